//! [`CatalogStore`] of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_model::{CatalogId, Tenant, Timestamp};

use super::MemoryStore;
use crate::{
    CatalogEntry, CatalogHead, CatalogSize, CatalogStore, CatalogVersion, NewEntry, StoreError,
};

#[async_trait]
impl CatalogStore for MemoryStore {
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError> {
        self.state().register(tenant, entry)
    }

    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        let state = self.state();
        let mut mine = state.entries_of(tenant);
        Ok(mine.find(|entry| entry.id == id).cloned())
    }

    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        let state = self.state();
        let at_path = state
            .live_entries_of(tenant)
            .filter(|entry| entry.path == path)
            .filter(|entry| version.is_none_or(|version| entry.version == version));
        Ok(at_path.max_by_key(|entry| entry.version).cloned())
    }

    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let state = self.state();
        let mut entries: Vec<CatalogEntry> = state
            .live_entries_of(tenant)
            .filter(|entry| kind.is_none_or(|kind| entry.kind == kind))
            .cloned()
            .collect();
        let age = |entry: &CatalogEntry| -> (Timestamp, CatalogId) { (entry.created_at, entry.id) };
        entries.sort_by_key(|entry| std::cmp::Reverse(age(entry)));
        Ok(entries)
    }

    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError> {
        let state = self.state();
        let mut newest: BTreeMap<&str, &CatalogEntry> = BTreeMap::new();
        for entry in state.live_entries_of(tenant) {
            let known = newest.entry(&entry.path).or_insert(entry);
            if known.version < entry.version {
                *known = entry;
            }
        }
        let of_kind = newest.into_values().filter(|entry| entry.kind == kind);
        let head = |entry: &CatalogEntry| CatalogHead {
            id: entry.id,
            path: entry.path.clone(),
            version: entry.version,
        };
        Ok(of_kind.map(head).collect())
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let state = self.state();
        let at_path = state.entries_of(tenant).filter(|entry| entry.path == path);
        Ok(highest_first(at_path.map(version).collect()))
    }

    async fn catalog_size(&self, tenant: &Tenant) -> Result<CatalogSize, StoreError> {
        let state = self.state();
        let mut size = CatalogSize { documents: 0, bytes: 0 };
        for entry in state.entries_of(tenant) {
            size.documents += 1;
            size.bytes += entry.content.len() as u64;
        }
        Ok(size)
    }

    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        number: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let mut state = self.state();
        let mut changed = Vec::new();
        for (owner, entry) in state.catalog.values_mut() {
            let is_meant = owner == tenant
                && entry.path == path
                && number.is_none_or(|number| entry.version == number);
            if is_meant && entry.deleted_at.is_some() != at.is_some() {
                entry.deleted_at = at;
                changed.push(version(entry));
            }
        }
        Ok(highest_first(changed))
    }
}

fn version(entry: &CatalogEntry) -> CatalogVersion {
    CatalogVersion {
        id: entry.id,
        path: entry.path.clone(),
        version: entry.version,
        kind: entry.kind.clone(),
        created_at: entry.created_at,
        deleted_at: entry.deleted_at,
    }
}

fn highest_first(mut versions: Vec<CatalogVersion>) -> Vec<CatalogVersion> {
    versions.sort_by_key(|version| std::cmp::Reverse(version.version));
    versions
}
