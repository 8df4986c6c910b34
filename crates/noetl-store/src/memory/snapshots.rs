//! [`SnapshotStore`] of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use crate::{Snapshot, SnapshotStore, StoreError};

/// Snapshots by tenant, aggregate type, and aggregate ID.
pub(super) type SnapshotTable = BTreeMap<(Tenant, String, String), Snapshot>;

fn key(tenant: &Tenant, of: &str, id: &str) -> (Tenant, String, String) {
    (tenant.clone(), of.to_owned(), id.to_owned())
}

#[async_trait]
impl SnapshotStore for MemoryStore {
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError> {
        let state = self.state();
        let found = state.snapshots.get(&key(tenant, aggregate_type, aggregate_id)).cloned();
        Ok(found.and_then(|found| found.whole(aggregate_type, aggregate_id)))
    }

    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError> {
        let key = key(tenant, aggregate_type, aggregate_id);
        let mut state = self.state();
        let known = state.snapshots.get(&key);
        let is_newer = known.is_none_or(|known| snapshot.version > known.version);
        if is_newer {
            state.snapshots.insert(key, snapshot);
        }
        Ok(is_newer)
    }

    async fn forget(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        Ok(state.snapshots.remove(&key(tenant, aggregate_type, aggregate_id)).is_some())
    }
}
