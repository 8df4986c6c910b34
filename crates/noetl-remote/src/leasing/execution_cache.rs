//! Caches executions whose commands are leased and completed, so each is read once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{ExecutionRow, RemoteStore, StoreError};

/// Maximum number of cached executions. Others are read on each use.
const KNOWN_MAX: NonZeroUsize = NonZeroUsize::new(8192).expect("it is not zero");

/// An execution as of the time it was read. Rely only on its tenant and playbook, which never
/// change.
pub(crate) type CachedExecution = Arc<(Tenant, ExecutionRow)>;

/// Immutable attributes of executions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ExecutionCache(Arc<Mutex<LruCache<ExecutionId, CachedExecution>>>);

impl Default for ExecutionCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(KNOWN_MAX))))
    }
}

impl ExecutionCache {
    /// Returns an execution, from the cache or the store, or `None` if it does not exist.
    pub(crate) async fn get_or_load(
        &self,
        store: &dyn RemoteStore,
        id: ExecutionId,
    ) -> Result<Option<CachedExecution>, StoreError> {
        if let Some(known) = self.lock().get(&id) {
            return Ok(Some(known.clone()));
        }
        let Some(tenant) = store.tenant_of(id).await? else { return Ok(None) };
        let Some(row) = store.execution(&tenant, id).await? else { return Ok(None) };
        let of = Arc::new((tenant, row));
        self.lock().put(id, of.clone());
        Ok(Some(of))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ExecutionId, CachedExecution>> {
        // Each critical section is one call that cannot panic midway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
