//! Executions whose commands are handed out and reported, so that they are not read anew for each.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{ExecutionRow, Store, StoreError};

/// Executions that are remembered; others are read again as they come.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("it is not zero");

/// An execution as it was when it was read: only whose it is and what it runs is to be relied on.
pub(crate) type Of = Arc<(Tenant, ExecutionRow)>;

/// What of executions never changes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Known(Arc<Mutex<LruCache<ExecutionId, Of>>>);

impl Default for Known {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(KNOWN_MAX))))
    }
}

impl Known {
    /// An execution, read if it is not known; `None` when there is none.
    pub(crate) async fn of(
        &self,
        store: &dyn Store,
        id: ExecutionId,
    ) -> Result<Option<Of>, StoreError> {
        if let Some(known) = self.lock().get(&id) {
            return Ok(Some(known.clone()));
        }
        let Some(tenant) = store.tenant_of(id).await? else { return Ok(None) };
        let Some(row) = store.execution(&tenant, id).await? else { return Ok(None) };
        let of = Arc::new((tenant, row));
        self.lock().put(id, of.clone());
        Ok(Some(of))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ExecutionId, Of>> {
        // Every critical section is one call that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
