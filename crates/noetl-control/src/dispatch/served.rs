//! Pools that workers elsewhere serve.
//!
//! The worker of this process takes commands of every pool, so that one process is enough for
//! everything. A pool of a name of its own is served by somebody else as soon as a worker of it asks
//! for commands here: it has what the pool is named for, so its commands are left to it for as long as
//! it is heard of. Workers that ask at another server are not known here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::Tenant;
use noetl_store::Wanted;
use noetl_store::holdings::SILENCE_MAX;
use tokio::time::Instant;

/// How long after its last word a worker serves its pool: as long as what it holds is left to it.
const SERVED_FOR: Duration = SILENCE_MAX;

/// Workers that are remembered; past it, those that are silent for long are forgotten.
const WORKERS_MAX: usize = 10_000;

/// What was left that is remembered; past it all of it is looked at again.
const LEFT_MAX: usize = 10_000;

/// Who serves which pool. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Served(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By worker: what it takes, and when it was last heard of.
    workers: HashMap<String, (Wanted, Instant)>,
    left: HashSet<Left>,
}

/// Commands that were left to workers elsewhere: of this pool, with this tool, of this tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Left {
    pool: Arc<str>,
    tool: Arc<str>,
    tenant: Tenant,
}

impl Served {
    /// A worker asks for commands.
    pub(crate) fn asks(&self, worker: &str, wanted: &Wanted) {
        let mut state = self.lock();
        if state.workers.len() >= WORKERS_MAX {
            state.workers.retain(|_, (_, at)| at.elapsed() < SERVED_FOR);
        }
        state.workers.insert(worker.to_owned(), (wanted.clone(), Instant::now()));
    }

    /// A worker is there, whether or not it has room for commands.
    pub(crate) fn heard(&self, worker: &str) {
        if let Some((_, at)) = self.lock().workers.get_mut(worker) {
            *at = Instant::now();
        }
    }

    pub(crate) fn gone(&self, worker: &str) {
        self.lock().workers.remove(worker);
    }

    /// Whether a command of this pool is left to workers elsewhere.
    pub(crate) fn leave(&self, pool: &Arc<str>, tool: &str, tenant: &Tenant) -> bool {
        let mut state = self.lock();
        let left = Left { pool: pool.clone(), tool: tool.into(), tenant: tenant.clone() };
        let is_served = state.left.len() < LEFT_MAX && state.serves(&left);
        if is_served {
            state.left.insert(left);
        }
        is_served
    }

    /// Whether commands were left to workers that are not there any more; told once.
    pub(crate) fn are_back(&self) -> bool {
        let mut state = self.lock();
        let left = std::mem::take(&mut state.left);
        let count = left.len();
        if count < LEFT_MAX {
            state.left = left.into_iter().filter(|left| state.serves(left)).collect();
        }
        state.left.len() < count
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every critical section leaves it as it should be.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn serves(&self, left: &Left) -> bool {
        self.workers.values().any(|(wanted, at)| {
            wanted.takes(&left.pool, &left.tool)
                && wanted.tenant.as_ref().is_none_or(|tenant| *tenant == left.tenant)
                && at.elapsed() < SERVED_FOR
        })
    }
}
