//! Compiled playbooks by catalog entry.

use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CatalogId, Tenant};
use noetl_playbook::{CheckReport, Diagnostic, Playbook, check};
use noetl_store::{CatalogEntry, CatalogStore, StoreError};

/// Compiled playbooks cached in memory. A large one takes a few megabytes.
const COMPILED_MAX: usize = 256;

/// Errors of loading a playbook.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// No catalog entry has this ID.
    #[error("catalog entry not found")]
    NotFound,
    /// The document is not a playbook, or has errors.
    #[error("the playbook has errors")]
    Invalid(Vec<Diagnostic>),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Cache of compiled playbooks by catalog entry. Cheap to clone.
#[derive(Clone)]
pub struct Playbooks {
    compiled: Arc<Mutex<LruCache<CatalogId, Arc<Playbook>>>>,
}

impl Default for Playbooks {
    fn default() -> Self {
        Self::new()
    }
}

impl Playbooks {
    pub fn new() -> Self {
        let most = std::num::NonZeroUsize::new(COMPILED_MAX).expect("more than none");
        Self { compiled: Arc::new(Mutex::new(LruCache::new(most))) }
    }

    pub async fn get(
        &self,
        store: &dyn CatalogStore,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Arc<Playbook>, PlaybookError> {
        if let Some(playbook) = self.lock().get(&id) {
            return Ok(playbook.clone());
        }
        let entry = store.entry(tenant, id).await.map_err(PlaybookError::Store)?;
        self.compile(entry.ok_or(PlaybookError::NotFound)?).await
    }

    /// Returns the compiled playbook of an entry.
    pub async fn compile(&self, entry: CatalogEntry) -> Result<Arc<Playbook>, PlaybookError> {
        if let Some(playbook) = self.lock().get(&entry.id) {
            return Ok(playbook.clone());
        }
        let id = entry.id;
        let checked = check_aside(entry.content).await;
        let playbook = checked.playbook.ok_or(PlaybookError::Invalid(checked.diagnostics))?;
        Ok(self.keep(id, playbook))
    }

    /// Caches a playbook that was compiled to check it.
    pub(crate) fn keep(&self, id: CatalogId, playbook: Playbook) -> Arc<Playbook> {
        let playbook = Arc::new(playbook);
        self.lock().put(id, playbook.clone());
        playbook
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<CatalogId, Arc<Playbook>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Size limit in bytes up to which documents are checked on the calling thread. Small ones then
/// need no blocking thread, whose work is outside the simulated time of tests.
const IN_PLACE_MAX: usize = 4 * 1024;

/// Checks a playbook. Moves a large one to a blocking thread, because a document of 100,000 steps
/// takes a second or two.
pub(crate) async fn check_aside(content: String) -> CheckReport {
    if content.len() <= IN_PLACE_MAX {
        return check(&content);
    }
    let checked = tokio::task::spawn_blocking(move || check(&content)).await;
    checked.unwrap_or_else(|stopped| match stopped.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The task is dropped only during runtime shutdown, when no caller waits for the result.
        Err(_) => CheckReport { playbook: None, diagnostics: Vec::new() },
    })
}
