//! Executions whose commands are handed out, so that they are not read anew for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::{ExecutionId, Tenant};
use noetl_store::ExecutionRow;

/// Executions that are remembered; with more, all are forgotten and read again as they come.
const KNOWN_MAX: usize = 4096;

/// What of executions never changes: whose they are, and what they run. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Mutex<HashMap<ExecutionId, (Tenant, ExecutionRow)>>>);

impl Known {
    /// An execution as it was when it was read.
    pub(super) fn get(&self, id: ExecutionId) -> Option<(Tenant, ExecutionRow)> {
        self.lock().get(&id).cloned()
    }

    pub(super) fn remember(&self, tenant: &Tenant, row: &ExecutionRow) {
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(row.id, (tenant.clone(), row.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, (Tenant, ExecutionRow)>> {
        // Every critical section is a call or two that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
