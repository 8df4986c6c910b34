//! [`Grants`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use crate::{Grant, Grants, NewGrant, StoreError};

#[async_trait]
impl Grants for MemoryStore {
    async fn put_grant(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, StoreError> {
        let created_at = self.clock.now();
        let mut state = self.state();
        if state.kept.grants.contains_key(&new.id) {
            let taken = format!("grant {} exists already", new.id);
            return Err(StoreError::backend("store a grant", taken));
        }
        let grant = Grant { tenant: tenant.clone(), kept: new, created_at };
        state.kept.grants.insert(grant.kept.id.clone(), grant.clone());
        Ok(grant)
    }

    async fn grants(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError> {
        let state = self.state();
        let own = state.kept.grants.values().filter(|grant| grant.tenant == *tenant);
        let mut own: Vec<Grant> = own.cloned().collect();
        own.sort_by(|a, b| (a.created_at, &a.kept.id).cmp(&(b.created_at, &b.kept.id)));
        Ok(own)
    }

    async fn remove_grant(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_own = state.kept.grants.get(id).is_some_and(|grant| grant.tenant == *tenant);
        if is_own {
            state.kept.grants.remove(id);
        }
        Ok(is_own)
    }
}
