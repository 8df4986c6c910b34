//! [`KeychainStore`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use super::auxiliary::{has_expired, purge};
use crate::{KeychainEntry, KeychainFilter, KeychainStore, NewKeychainEntry, StoreError};

#[async_trait]
impl KeychainStore for MemoryStore {
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError> {
        let created_at = self.clock.now();
        let key = (tenant.clone(), new.cache_key.clone());
        let entry = KeychainEntry { kept: new, created_at, accessed_at: None, access_count: 0 };
        self.state().kept.keychain.insert(key, entry.clone());
        Ok(entry)
    }

    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let entry = state.kept.keychain.get_mut(&(tenant.clone(), cache_key.to_owned()));
        let live = entry.filter(|entry| !has_expired(entry.kept.expires_at, now));
        Ok(live.map(|entry| {
            entry.access_count += 1;
            entry.accessed_at = Some(now);
            entry.clone()
        }))
    }

    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let key = (tenant.clone(), cache_key.to_owned());
        Ok(self.state().kept.keychain.get(&key).cloned())
    }

    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError> {
        let state = self.state();
        let mine = state.kept.keychain.iter().filter(|((owner, _), _)| owner == tenant);
        let taken = mine.map(|(_, entry)| entry).filter(|entry| {
            let kept = &entry.kept;
            filter.catalog.is_none_or(|catalog| kept.catalog == catalog)
                && filter.execution.is_none_or(|execution| kept.execution == Some(execution))
        });
        Ok(taken.cloned().collect())
    }

    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError> {
        let key = (tenant.clone(), cache_key.to_owned());
        Ok(self.state().kept.keychain.remove(&key).is_some())
    }

    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError> {
        let now = self.clock.now();
        Ok(purge(&mut self.state().kept.keychain, limit, |entry| {
            entry.kept.expires_at.filter(|at| has_expired(Some(*at), now))
        }))
    }
}
