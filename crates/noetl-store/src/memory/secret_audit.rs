//! [`SecretAuditStore`] of the in-memory store.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, Tenant};

use super::MemoryStore;
use super::auxiliary::purge;
use crate::{
    AuditChain, AuditFilter, AuditHead, AuditLink, SecretAuditStore, SecretUse, StoreError,
};

#[async_trait]
impl SecretAuditStore for MemoryStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        let kept = &mut self.state().kept;
        match kept.audit.entry(used.id) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(place) => {
                let (link, _) = head(&kept.links).next(tenant, &used);
                kept.links.push((link, used.id));
                place.insert((tenant.clone(), used));
                Ok(true)
            }
        }
    }

    async fn audit_chain(&self) -> Result<AuditChain, StoreError> {
        Ok(AuditChain { head: head(&self.state().kept.links), outside: 0 })
    }

    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError> {
        let state = self.state();
        let kept = &state.kept;
        let links = kept.links.iter().filter(|(link, _)| link.seq > after).take(limit);
        let with_use = links.map(|(link, id)| {
            // A use that was purged may have been recorded again, with a link of its own.
            let newest = kept.links.iter().rfind(|(_, of)| of == id).map(|(link, _)| link.seq);
            let used = kept.audit.get(id).filter(|_| newest == Some(link.seq));
            AuditLink { used: used.cloned(), ..link.clone() }
        });
        Ok(with_use.collect())
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

fn head(links: &[(AuditLink, AuditId)]) -> AuditHead {
    links.last().map_or(AuditHead::START, |(link, _)| AuditHead { seq: link.seq, hash: link.hash })
}
