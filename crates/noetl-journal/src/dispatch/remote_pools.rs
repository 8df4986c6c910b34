//! Tracks the pools that remote workers serve.
//!
//! The local worker accepts commands of every pool, so one process can run everything. Once a
//! remote worker polls this server for commands of a named pool, the local worker leaves that
//! pool's commands to it: the worker has the resources the pool is named for. This lasts as long as
//! the worker shows signs of life. Workers that poll another server are not known here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::Tenant;
use noetl_store::CommandFilter;
use noetl_store::command_leases::SILENCE_MAX;
use tokio::time::Instant;

/// Time after its last sign of life for which a worker counts as serving its pool. Equals the time
/// its leases last without a renewal.
const SERVED_FOR: Duration = SILENCE_MAX;

/// Limit of tracked workers. At the limit, workers without a recent sign of life are removed.
const WORKERS_MAX: usize = 10_000;

/// Limit of tracked entries for commands left to remote workers. At the limit, the local worker
/// leaves no more commands, and the next check releases all of them.
const LEFT_MAX: usize = 10_000;

/// Remote workers by the pools they serve. Cheap to clone.
#[derive(Clone, Default)]
pub struct RemotePools(Arc<Mutex<RemotePoolState>>);

#[derive(Default)]
struct RemotePoolState {
    /// By worker: the commands it accepts, by pool, and the time of its last sign of life.
    workers: HashMap<String, (Vec<CommandFilter>, Instant)>,
    left: HashSet<DeferredCommands>,
}

/// Pool, tool, and tenant of commands that were left to remote workers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DeferredCommands {
    pool: Arc<str>,
    tool: Arc<str>,
    tenant: Tenant,
}

impl RemotePools {
    /// Records that a worker polls for commands.
    pub fn worker_polled(&self, worker: &str, wanted: &CommandFilter) {
        self.worker_serves(worker, vec![wanted.clone()]);
    }

    /// Records that a worker accepts commands of several pools.
    pub fn worker_serves(&self, worker: &str, wanted: Vec<CommandFilter>) {
        let mut state = self.lock();
        if state.workers.len() >= WORKERS_MAX {
            state.workers.retain(|_, (_, at)| at.elapsed() < SERVED_FOR);
        }
        state.workers.insert(worker.to_owned(), (wanted, Instant::now()));
    }

    /// Records a sign of life of a worker, whether or not it polls for commands.
    pub fn worker_seen(&self, worker: &str) {
        if let Some((_, at)) = self.lock().workers.get_mut(worker) {
            *at = Instant::now();
        }
    }

    pub fn worker_left(&self, worker: &str) {
        self.lock().workers.remove(worker);
    }

    /// Returns `true` if the local worker has to leave such a command to remote workers.
    pub(crate) fn defer_to_remote(&self, pool: &Arc<str>, tool: &str, tenant: &Tenant) -> bool {
        let mut state = self.lock();
        let left =
            DeferredCommands { pool: pool.clone(), tool: tool.into(), tenant: tenant.clone() };
        let is_served = state.left.len() < LEFT_MAX && state.serves(&left);
        if is_served {
            state.left.insert(left);
        }
        is_served
    }

    /// Returns `true`, once, if commands were left to workers that have since gone.
    pub(crate) fn take_reclaimable(&self) -> bool {
        let mut state = self.lock();
        let left = std::mem::take(&mut state.left);
        let count = left.len();
        if count < LEFT_MAX {
            state.left = left.into_iter().filter(|left| state.serves(left)).collect();
        }
        state.left.len() < count
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RemotePoolState> {
        // Every critical section leaves the state consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemotePoolState {
    fn serves(&self, left: &DeferredCommands) -> bool {
        let takes = |wanted: &CommandFilter| {
            wanted.takes(&left.pool, &left.tool)
                && wanted.tenant.as_ref().is_none_or(|tenant| *tenant == left.tenant)
        };
        let mut workers = self.workers.values();
        workers.any(|(wanted, at)| wanted.iter().any(takes) && at.elapsed() < SERVED_FOR)
    }
}
