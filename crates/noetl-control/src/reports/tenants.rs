//! Whose execution it is, as far as this process was told; that never changes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::{ExecutionId, Tenant};

/// Executions whose tenant is remembered; of others it is asked again.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// Tenants by execution. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub(crate) struct Tenants(Arc<Mutex<LruCache<ExecutionId, Tenant>>>);

impl Default for Tenants {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(REMEMBERED_MAX))))
    }
}

impl Tenants {
    pub(super) fn get(&self, execution: ExecutionId) -> Option<Tenant> {
        self.lock().get(&execution).cloned()
    }

    pub(super) fn put(&self, execution: ExecutionId, tenant: Tenant) {
        self.lock().put(execution, tenant);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ExecutionId, Tenant>> {
        // Every critical section is one call that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
