//! What a control plane can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::MachineId;

/// Settings of one control plane.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many commands a worker in this process runs at a time; 0 for none.
    pub slots: usize,
    /// This process's number in the ids it mints; any that is free when `None`.
    pub machine: Option<MachineId>,
    /// How many bytes of execution state are kept in memory. Evicted state is read back.
    pub cache_bytes: usize,
    /// What templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Whether unfinished executions found at the start go on.
    pub resume: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { slots: 16, machine: None, cache_bytes: 256 << 20, env: Arc::default(), resume: true }
    }
}
