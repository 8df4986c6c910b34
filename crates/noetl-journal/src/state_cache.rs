//! LRU cache of execution states, bounded by bytes.
//!
//! Only an optimization: a state that is not cached is folded from the event log, and the commit
//! checks every state against the log's version.

use std::sync::Arc;

use lru::LruCache;
use noetl_engine::Execution;
use noetl_model::{ExecutionId, Tenant};
use noetl_playbook::Playbook;

/// Cached state of one execution.
pub(crate) struct CachedState {
    pub(crate) state: Execution,
    pub(crate) playbook: Arc<Playbook>,
    pub(crate) tenant: Tenant,
    /// Estimated bytes of log since the last snapshot.
    pub(crate) log_bytes: usize,
    /// Bytes of the last snapshot.
    pub(crate) snapshot_bytes: usize,
    /// Size in bytes counted when the state was cached.
    bytes: usize,
}

impl CachedState {
    pub(crate) fn new(state: Execution, playbook: Arc<Playbook>, tenant: Tenant) -> Self {
        Self { state, playbook, tenant, log_bytes: 0, snapshot_bytes: 0, bytes: 0 }
    }
}

/// Execution states by execution ID.
pub(crate) struct StateCache {
    states: LruCache<ExecutionId, CachedState>,
    bytes: usize,
    bytes_max: usize,
}

impl StateCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { states: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    /// Returns the tenant of an execution if its state is cached.
    pub(crate) fn tenant(&self, execution: ExecutionId) -> Option<&Tenant> {
        self.states.peek(&execution).map(|cached| &cached.tenant)
    }

    pub(crate) fn contains(&self, execution: ExecutionId) -> bool {
        self.states.contains(&execution)
    }

    /// Removes and returns a state, so that the caller can change it and put it back.
    pub(crate) fn take(&mut self, execution: ExecutionId) -> Option<CachedState> {
        let cached = self.states.pop(&execution)?;
        self.bytes -= cached.bytes;
        Some(cached)
    }

    /// Removes the state of an execution if it has ended.
    pub(crate) fn drop_ended(&mut self, execution: ExecutionId) {
        if self.states.peek(&execution).is_some_and(|cached| cached.state.status().is_final()) {
            self.take(execution);
        }
    }

    /// Inserts a state as the most recently used and evicts the least recently used ones while the
    /// cache is over its limit. At least one state stays.
    pub(crate) fn put(&mut self, mut cached: CachedState) {
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
