//! Workers elsewhere: the programs that said they are there, and the signs of life they give.
//!
//! A worker that is known by its name only holds what it began for as long as it is heard of. Any word
//! of it counts: a heartbeat, a claim, a report. A name that registers with another key is another
//! process; what the one before it held is held by nobody.

mod heartbeat;
mod rhythm;
mod turn;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::command::is_elsewhere;
use noetl_model::{ExecutionId, RuntimeId, Tenant, Value};
use noetl_store::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, Store, StoreError, Wanted};
use tokio::time::Instant;
use tracing::info;

use self::rhythm::Rhythm;
use self::turn::Turns;
use crate::dispatch::served::Served;
use crate::ids::Ids;
use crate::leasing::Held;
use crate::lost_reports::LostReports;

/// Workers remembered here. Beyond it all are forgotten, and noted once more than needed.
const REMEMBERED_MAX: usize = 10_000;

/// The longest name of a worker.
const NAME_MAX: usize = 200;

/// What a worker says when it registers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registration {
    pub name: String,
    /// Where it is reached.
    pub uri: Option<String>,
    pub status: String,
    pub labels: Option<Value>,
    /// What it can do.
    pub capabilities: Option<Value>,
    /// How much it can do at once.
    pub capacity: Option<i32>,
    /// What else it says; its public key is at `worker_public_key`.
    pub runtime: Option<Value>,
}

/// Why nothing was done for a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Its name is none that a worker elsewhere can have.
    #[error("'{name}' is no name for a worker: {why}")]
    Name {
        /// The name, or its beginning.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No such runtime has registered.
    #[error("Runtime not found: {kind} {name}")]
    Unknown { kind: &'static str, name: String },
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// Checks that a worker elsewhere can have this name.
pub(crate) fn check_name(name: &str) -> Result<(), WorkerError> {
    let why = if name.trim().is_empty() {
        "it is empty"
    } else if name.len() > NAME_MAX {
        "it is longer than 200 bytes"
    } else if name.contains('\0') {
        "it holds a NUL character"
    } else if !is_elsewhere(name) {
        "workers inside the control plane have such names"
    } else {
        return Ok(());
    };
    Err(WorkerError::Name { name: name.chars().take(NAME_MAX).collect(), why })
}

/// Whose commands a caller speaks of: those of its tenant, or all.
pub type Scope = Option<Tenant>;

/// How long a key is taken for the one in the worker's row: somebody else may have removed the row.
const KNOWN_FOR: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Remembered {
    /// When each was last noted.
    noted: HashMap<(Scope, String), Instant>,
    /// Heartbeats of each worker.
    rhythms: HashMap<(Tenant, String), Rhythm>,
    /// The key each was last known by.
    keys: HashMap<(Tenant, String), Known>,
}

/// A key that is in a worker's row, or was a moment ago.
#[derive(Clone)]
struct Known {
    key: String,
    since: Instant,
}

/// The workers service. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    store: Arc<dyn Store>,
    ids: Ids,
    remembered: Arc<Mutex<Remembered>>,
    turns: Turns,
    held: Held,
    served: Served,
    lost: LostReports,
}

impl Workers {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ids: Ids,
        held: Held,
        served: Served,
        lost: LostReports,
    ) -> Self {
        let turns = Turns::new(store.clone());
        Self { store, ids, remembered: Arc::default(), turns, held, served, lost }
    }

    /// Registers a runtime, or takes over what a known one says now. Two callers at once make one row.
    pub async fn register(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        kind: RuntimeKind,
        said: Registration,
    ) -> Result<RuntimeRow, WorkerError> {
        check_name(&said.name)?;
        let key = key_of(said.runtime.as_ref()).map(str::to_owned);
        let (RuntimeKind::WorkerPool, Some(key)) = (kind, key) else {
            return self.write(tenant, kind, said).await;
        };
        let name = said.name.clone();
        // One at a time: of two first calls of a process, the later one must find the key of the
        // earlier, or it would end what that one has claimed.
        let turn = self.turns.take(tenant, &name).await.map_err(WorkerError::Store)?;
        // First: whoever registers has begun just now, so that what its name held is lost in any
        // case; and if this is cut short, it is done when it registers again.
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

    /// Removes a runtime. What it still holds it may still report.
    pub async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        let gone = self.store.deregister(tenant, kind, name).await.map_err(WorkerError::Store)?;
        self.lock().keys.remove(&(tenant.clone(), name.to_owned()));
        self.served.gone(name);
        match gone {
            true => Ok(()),
            false => Err(WorkerError::Unknown { kind: kind.as_str(), name: name.to_owned() }),
        }
    }

    /// Ends every lease of a worker that goes: whoever looks next hands its commands out again.
    pub async fn release(
        &self,
        scope: &Scope,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<(), WorkerError> {
        if kind != RuntimeKind::WorkerPool || !is_elsewhere(name) {
            return Ok(());
        }
        if self.store.end_held(scope.as_ref(), name).await.map_err(WorkerError::Store)? > 0 {
            self.held.seen();
        }
        Ok(())
    }

    /// Runtimes of a tenant.
    pub async fn list(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError> {
        self.store.runtimes(tenant, filter).await
    }

    /// Whose execution it is, for callers that work for every tenant.
    pub async fn tenant_of(&self, execution: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        self.store.tenant_of(execution).await
    }

    /// Takes up a worker that asks for commands: it is listed, and if its key is another than before,
    /// what its name held is lost.
    pub(crate) async fn asks(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        name: &str,
        wanted: &Wanted,
        key: Option<&str>,
    ) -> Result<(), WorkerError> {
        self.served.asks(name, wanted);
        let known = self.lock().keys.get(&(tenant.clone(), name.to_owned())).cloned();
        let is_known = known.is_some_and(|known| {
            known.since.elapsed() < KNOWN_FOR && key.is_none_or(|key| key == known.key)
        });
        if is_known {
            return Ok(());
        }
        let kind = RuntimeKind::WorkerPool;
        // What it said when it registered stays. Who gives no key is asked for none.
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
            labels: Some(serde_json::json!({ "pool_name": wanted.pool() })),
            runtime: key.map(|key| serde_json::json!({ "kind": "rust", KEY: key })),
            ..Registration::default()
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

    /// Whether workers elsewhere hold anything.
    pub(crate) const fn held(&self) -> &Held {
        &self.held
    }

    fn remember(&self, tenant: &Tenant, name: &str, key: &str) {
        let mut remembered = self.lock();
        if remembered.keys.len() >= REMEMBERED_MAX {
            remembered.keys.clear();
        }
        let known = Known { key: key.to_owned(), since: Instant::now() };
        remembered.keys.insert((tenant.clone(), name.to_owned()), known);
    }

    /// Ends the leases of the process that had this name before, if it was another.
    async fn end_process_before(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        name: &str,
        key: &str,
    ) -> Result<(), WorkerError> {
        let before = self.listed(tenant, name).await?;
        if before.is_some_and(|row| key_of(row.said.runtime.as_ref()) == Some(key)) {
            return Ok(());
        }
        let ended = self.store.end_held(scope.as_ref(), name).await;
        let ended = ended.map_err(WorkerError::Store)?;
        if ended > 0 {
            info!(worker = name, commands = ended, "a worker began anew and lost what it held");
        }
        Ok(())
    }

    /// What is listed of a worker.
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
        self.ids.leased().map_err(WorkerError::Store)?;
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
        // Every critical section is a few assignments that cannot panic half-way.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a registration has the worker's public key.
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
