//! The audit of secrets in memory.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use super::kept::purge;
use crate::{AuditFilter, SecretAudit, SecretUse, StoreError};

#[async_trait]
impl SecretAudit for MemoryStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        match self.state().kept.audit.entry(used.id) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(place) => {
                place.insert((tenant.clone(), used));
                Ok(true)
            }
        }
    }

    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        let state = self.state();
        let mine = state.kept.audit.values().filter(|(owner, _)| owner == tenant);
        let mut taken: Vec<&SecretUse> =
            mine.map(|(_, used)| used).filter(|used| filter.takes(used)).collect();
        taken.sort_by_key(|used| Reverse((used.at, used.id)));
        Ok(taken.into_iter().take(filter.limit).cloned().collect())
    }

    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        let until = self.clock.now().minus(age);
        Ok(purge(&mut self.state().kept.audit, limit, |(_, used)| {
            Some(used.at).filter(|at| *at < until)
        }))
    }
}
