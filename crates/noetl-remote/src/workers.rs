//! Registers remote workers and tracks their liveness.
//!
//! A worker that does not name its commands keeps its leases as long as it sends anything: a
//! heartbeat, a claim, or a report. If a name registers with another key, it is another process,
//! and the leases of the previous one end.

mod heartbeat;
mod registration_lock;
mod rhythm;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_identity::IdGenerator;
use noetl_journal::{LostReports, RemotePools, TenantScope};
use noetl_model::command::{DEFAULT_POOL, is_remote_worker};
use noetl_model::{ExecutionId, RuntimeId, Tenant, Value};
use noetl_store::{
    CommandFilter, NewRuntime, RemoteStore, RuntimeFilter, RuntimeKind, RuntimeRow, StoreError,
};
use tokio::time::Instant;
use tracing::info;

use self::registration_lock::RegistrationLocks;
use self::rhythm::Rhythm;
use crate::lease_activity::LeaseActivity;

/// Maximum number of workers cached. Beyond it the cache is cleared, which costs some extra writes.
const REMEMBERED_MAX: usize = 10_000;

/// Maximum length of a worker's name, in bytes.
const NAME_MAX: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registration {
    pub name: String,
    pub uri: Option<String>,
    pub status: String,
    pub labels: Option<Value>,
    /// Capabilities, such as the tool kinds.
    pub capabilities: Option<Value>,
    /// Number of commands the worker runs at a time.
    pub capacity: Option<i32>,
    /// Further attributes; `worker_public_key` is the public key.
    pub runtime: Option<Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The name is not valid for a remote worker.
    #[error("'{name}' is not a valid worker name: {why}")]
    Name {
        /// Name, truncated to 200 characters.
        name: String,
        /// Reason the name is invalid.
        why: &'static str,
    },
    /// No such runtime is registered.
    #[error("Runtime not found: {kind} {name}")]
    Unknown { kind: &'static str, name: String },
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Checks that a name is valid for a remote worker.
pub(crate) fn check_name(name: &str) -> Result<(), WorkerError> {
    let why = if name.trim().is_empty() {
        "it is empty"
    } else if name.len() > NAME_MAX {
        "it is longer than 200 bytes"
    } else if name.contains('\0') {
        "it holds a NUL character"
    } else if !is_remote_worker(name) {
        "workers inside the control plane have such names"
    } else {
        return Ok(());
    };
    Err(WorkerError::Name { name: name.chars().take(NAME_MAX).collect(), why })
}

/// Time a cached key is assumed to be in the worker's row. Another process may delete the row.
const KNOWN_FOR: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Remembered {
    /// Time of the last recorded activity.
    noted: HashMap<(TenantScope, String), Instant>,
    /// Heartbeat intervals of each worker.
    rhythms: HashMap<(Tenant, String), Rhythm>,
    /// Last known key of each worker.
    keys: HashMap<(Tenant, String), CachedKey>,
}

/// Key in a worker's row, as of the time it was read or written.
#[derive(Clone)]
struct CachedKey {
    key: String,
    since: Instant,
}

/// Registers workers and records their activity. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    store: Arc<dyn RemoteStore>,
    ids: IdGenerator,
    remembered: Arc<Mutex<Remembered>>,
    turns: RegistrationLocks,
    held: LeaseActivity,
    served: RemotePools,
    lost: LostReports,
}

impl Workers {
    pub(crate) fn new(
        store: Arc<dyn RemoteStore>,
        ids: IdGenerator,
        held: LeaseActivity,
        served: RemotePools,
        lost: LostReports,
    ) -> Self {
        let turns = RegistrationLocks::new(store.clone());
        Self { store, ids, remembered: Arc::default(), turns, held, served, lost }
    }

    /// Registers a runtime, or updates a registered one. Concurrent calls create one row.
    pub async fn register(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        kind: RuntimeKind,
        said: Registration,
    ) -> Result<RuntimeRow, WorkerError> {
        check_name(&said.name)?;
        let key = key_of(said.runtime.as_ref()).map(str::to_owned);
        let (RuntimeKind::WorkerPool, Some(key)) = (kind, key) else {
            return self.write(tenant, kind, said).await;
        };
        let name = said.name.clone();
        // Serialized: of two initial requests of a process, the later one must see the key of the
        // earlier, or it would end the leases that the earlier one acquired.
        let turn = self.turns.take(tenant, &name).await.map_err(WorkerError::Store)?;
        // Before the write: the process has just started, so commands leased to its name are lost
        // in any case. If this is interrupted, the next registration does it.
        let ended = self.end_process_before(tenant, scope, &name, &key).await;
        let row = match ended {
            Ok(()) => self.write(tenant, kind, said).await,
            Err(error) => Err(error),
        };
        turn.end().await;
        let row = row?;
        self.remember(tenant, &name, &key);
        Ok(row)
    }

    /// Deletes a runtime. It may still report commands that it holds.
    pub async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        let gone = self.store.deregister(tenant, kind, name).await.map_err(WorkerError::Store)?;
        self.lock().keys.remove(&(tenant.clone(), name.to_owned()));
        self.served.worker_left(name);
        match gone {
            true => Ok(()),
            false => Err(WorkerError::Unknown { kind: kind.as_str(), name: name.to_owned() }),
        }
    }

    /// Expires every lease of a worker that shuts down, so the next lease scan reissues its
    /// commands.
    pub async fn release(
        &self,
        scope: &TenantScope,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        if kind != RuntimeKind::WorkerPool || !is_remote_worker(name) {
            return Ok(());
        }
        if self.store.release_leases(scope.as_ref(), name).await.map_err(WorkerError::Store)? > 0 {
            self.held.record();
        }
        Ok(())
    }

    /// Returns the runtimes of a tenant.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError> {
        self.store.runtimes(tenant, filter).await
    }

    /// Returns the tenant of an execution, for callers that serve every tenant.
    pub async fn tenant_of(&self, execution: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        self.store.tenant_of(execution).await
    }

    /// Records a worker's long poll: registers the worker if necessary and, if its key has changed,
    /// ends the leases of its name.
    pub(crate) async fn record_poll(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        name: &str,
        wanted: &CommandFilter,
        key: Option<&str>,
    ) -> Result<(), WorkerError> {
        self.served.worker_polled(name, wanted);
        let pool = wanted.pool();
        self.ensure_registered(tenant, scope, name, key, || Registration {
            labels: Some(serde_json::json!({ "pool_name": pool })),
            ..Registration::default()
        })
        .await
    }

    /// Like [`record_poll`](Self::record_poll), for a connection that serves several pools. A new
    /// registration gets these capabilities and this capacity.
    pub(crate) async fn record_connection(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        name: &str,
        wanted: &[CommandFilter],
        key: Option<&str>,
        slots: usize,
    ) -> Result<(), WorkerError> {
        self.served.worker_serves(name, wanted.to_vec());
        self.ensure_registered(tenant, scope, name, key, || {
            let pool = wanted.first().map_or(DEFAULT_POOL, CommandFilter::pool);
            let kinds = wanted.first().and_then(|wanted| wanted.kinds.as_ref());
            Registration {
                labels: Some(serde_json::json!({ "pool_name": pool })),
                capabilities: kinds.map(|kinds| serde_json::json!({ "tools": kinds })),
                capacity: i32::try_from(slots).ok(),
                ..Registration::default()
            }
        })
        .await
    }

    /// Registers a worker with these data if it is not registered. If its key has changed, ends the
    /// leases of its name.
    async fn ensure_registered(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        name: &str,
        key: Option<&str>,
        data: impl FnOnce() -> Registration,
    ) -> Result<(), WorkerError> {
        let known = self.lock().keys.get(&(tenant.clone(), name.to_owned())).cloned();
        let is_known = known.is_some_and(|known| {
            known.since.elapsed() < KNOWN_FOR && key.is_none_or(|key| key == known.key)
        });
        if is_known {
            return Ok(());
        }
        let kind = RuntimeKind::WorkerPool;
        // The data of its registration is preserved. A worker without a key is not asked for one.
        let listed = self.listed(tenant, name).await?;
        let is_same =
            |row: &RuntimeRow| key.is_none_or(|key| key_of(row.said.runtime.as_ref()) == Some(key));
        if listed.is_some_and(|row| is_same(&row))
            && self.store.heartbeat(tenant, kind, name).await.map_err(WorkerError::Store)?.is_some()
        {
            self.remember(tenant, name, key.unwrap_or_default());
            return Ok(());
        }
        let said = Registration {
            name: name.to_owned(),
            status: "ready".to_owned(),
            runtime: key.map(|key| serde_json::json!({ "kind": "rust", KEY: key })),
            ..data()
        };
        self.register(tenant, scope, kind, said).await?;
        if key.is_none() {
            self.remember(tenant, name, "");
        }
        Ok(())
    }

    pub(crate) const fn lost_reports(&self) -> &LostReports {
        &self.lost
    }

    /// Returns the tracker of remote workers' leases.
    pub(crate) const fn held(&self) -> &LeaseActivity {
        &self.held
    }

    fn remember(&self, tenant: &Tenant, name: &str, key: &str) {
        let mut remembered = self.lock();
        if remembered.keys.len() >= REMEMBERED_MAX {
            remembered.keys.clear();
        }
        let known = CachedKey { key: key.to_owned(), since: Instant::now() };
        remembered.keys.insert((tenant.clone(), name.to_owned()), known);
    }

    /// Ends the leases of the previous process with this name, if its key differs.
    async fn end_process_before(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        name: &str,
        key: &str,
    ) -> Result<(), WorkerError> {
        let before = self.listed(tenant, name).await?;
        if before.is_some_and(|row| key_of(row.said.runtime.as_ref()) == Some(key)) {
            return Ok(());
        }
        let ended = self.store.release_leases(scope.as_ref(), name).await;
        let ended = ended.map_err(WorkerError::Store)?;
        if ended > 0 {
            info!(worker = name, commands = ended, "worker restarted, released its leases");
        }
        Ok(())
    }

    /// Returns the row of a worker.
    async fn listed(&self, tenant: &Tenant, name: &str) -> Result<Option<RuntimeRow>, WorkerError> {
        let kind = Some(RuntimeKind::WorkerPool);
        let filter =
            RuntimeFilter { kind, name: Some(name.to_owned()), ..RuntimeFilter::default() };
        let listed = self.store.runtimes(tenant, &filter).await.map_err(WorkerError::Store)?;
        Ok(listed.into_iter().find(|row| row.said.name == name))
    }

    async fn write(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        said: Registration,
    ) -> Result<RuntimeRow, WorkerError> {
        self.ids.ensure_leased().map_err(WorkerError::Store)?;
        let runtime = NewRuntime {
            id: RuntimeId::new(self.ids.event().get()),
            kind,
            name: said.name,
            uri: said.uri,
            status: said.status,
            labels: said.labels,
            capabilities: said.capabilities,
            capacity: said.capacity,
            runtime: said.runtime,
        };
        self.store.register_runtime(tenant, runtime).await.map_err(WorkerError::Store)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        // Each critical section is a few assignments that cannot panic midway.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Key of the worker's public key in its registration.
const KEY: &str = "worker_public_key";

fn key_of(runtime: Option<&Value>) -> Option<&str> {
    runtime?.get(KEY)?.as_str().filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_workers_inside_are_not_for_others() {
        for wrong in ["", " ", "local", "local:machine/1:2", "control-plane", "a\0b"] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
        assert!(check_name(&"w".repeat(NAME_MAX + 1)).is_err());
        assert!(check_name("worker-1").is_ok());
    }
}
