//! States of executions in memory, least recently used out first, bounded by bytes.
//!
//! Only an optimisation: a state that is not here is folded from the log, and the commit checks
//! every state against the log's version.

use std::sync::Arc;

use lru::LruCache;
use noetl_engine::Execution;
use noetl_model::{ExecutionId, Tenant};
use noetl_playbook::Playbook;

/// One execution in memory.
pub(crate) struct Cached {
    pub(crate) state: Execution,
    pub(crate) playbook: Arc<Playbook>,
    pub(crate) tenant: Tenant,
    /// How much log there is since the last snapshot, and how large that was.
    pub(crate) log_bytes: usize,
    pub(crate) snapshot_bytes: usize,
    /// What it counted for when it was put here.
    bytes: usize,
}

impl Cached {
    pub(crate) fn new(state: Execution, playbook: Arc<Playbook>, tenant: Tenant) -> Self {
        Self { state, playbook, tenant, log_bytes: 0, snapshot_bytes: 0, bytes: 0 }
    }
}

/// States by execution.
pub(crate) struct Cache {
    states: LruCache<ExecutionId, Cached>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { states: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    /// Whose an execution is, if its state is here.
    pub(crate) fn tenant(&self, execution: ExecutionId) -> Option<&Tenant> {
        self.states.peek(&execution).map(|cached| &cached.tenant)
    }

    pub(crate) fn contains(&self, execution: ExecutionId) -> bool {
        self.states.contains(&execution)
    }

    /// Takes a state out, to be changed and put back, or dropped.
    pub(crate) fn take(&mut self, execution: ExecutionId) -> Option<Cached> {
        let cached = self.states.pop(&execution)?;
        self.bytes -= cached.bytes;
        Some(cached)
    }

    /// Drops the state of an execution that ended.
    pub(crate) fn drop_ended(&mut self, execution: ExecutionId) {
        if self.states.peek(&execution).is_some_and(|cached| cached.state.status().is_final()) {
            self.take(execution);
        }
    }

    /// Puts a state in as the most recently used, and the oldest ones out where room is short.
    pub(crate) fn put(&mut self, mut cached: Cached) {
        let execution = cached.state.id();
        self.take(execution);
        cached.bytes = cached.state.bytes();
        self.bytes += cached.bytes;
        self.states.put(execution, cached);
        while self.bytes > self.bytes_max && self.states.len() > 1 {
            if let Some((_, oldest)) = self.states.pop_lru() {
                self.bytes -= oldest.bytes;
            }
        }
    }
}
