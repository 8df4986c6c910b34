//! [`RuntimeStore`] of the in-memory store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use crate::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore, StoreError};

/// Runtimes by tenant, kind as text, and name.
pub(super) type RuntimeTable = BTreeMap<(Tenant, &'static str, String), RuntimeRow>;

fn key(tenant: &Tenant, kind: RuntimeKind, name: &str) -> (Tenant, &'static str, String) {
    (tenant.clone(), kind.as_str(), name.to_owned())
}

#[async_trait]
impl RuntimeStore for MemoryStore {
    async fn register_runtime(
        &self,
        tenant: &Tenant,
        runtime: NewRuntime,
    ) -> Result<RuntimeRow, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let key = key(tenant, runtime.kind, &runtime.name);
        let known = state.runtimes.get(&key);
        if known.is_none() && state.runtimes.values().any(|other| other.said.id == runtime.id) {
            let taken = format!("runtime {} exists already", runtime.id);
            return Err(StoreError::backend("register a runtime", taken));
        }
        let (id, created_at) =
            known.map_or((runtime.id, now), |known| (known.said.id, known.created_at));
        let said = NewRuntime { id, ..runtime };
        let row = RuntimeRow { said, heartbeat: now, created_at, updated_at: now };
        state.runtimes.insert(key, row.clone());
        Ok(row)
    }

    async fn heartbeat(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<Option<Duration>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let Some(known) = state.runtimes.get_mut(&key(tenant, kind, name)) else {
            return Ok(None);
        };
        let since = now.since(known.heartbeat);
        known.heartbeat = now;
        known.updated_at = now;
        Ok(Some(since))
    }

    async fn runtimes(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError> {
        let state = self.state();
        let mine = state.runtimes.iter().filter(|((owner, ..), _)| owner == tenant);
        let mine = mine.map(|(_, row)| row).filter(|row| filter.takes(&row.said));
        Ok(mine.cloned().collect())
    }

    async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<bool, StoreError> {
        Ok(self.state().runtimes.remove(&key(tenant, kind, name)).is_some())
    }

    async fn purge_stale(&self, older_than: Duration) -> Result<usize, StoreError> {
        let mut state = self.state();
        let until = self.clock.now().minus(older_than);
        let before = state.runtimes.len();
        state.runtimes.retain(|_, row| !row.said.kind.is_purged() || row.heartbeat > until);
        Ok(before - state.runtimes.len())
    }
}
