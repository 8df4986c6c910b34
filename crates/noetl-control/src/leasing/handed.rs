//! Commands that went out with the answer to a report.
//!
//! The answer may be lost, and the report comes again. It changes nothing then; but the worker has a
//! command by now that it does not know of, and is told once more.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CommandId, CommandState};
use noetl_store::{Store, StoreError};

use super::Leased;

/// Answers that are remembered: those that are under way, and some more. A worker whose answer is
/// forgotten loses the command with its lease.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// By the command that was reported: what its worker was given. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handed(Arc<Mutex<LruCache<CommandId, Leased>>>);

impl Default for Handed {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(REMEMBERED_MAX))))
    }
}

impl Handed {
    pub(crate) fn remember(&self, reported: CommandId, leased: Leased) {
        self.lock().put(reported, leased);
    }

    /// What the worker was given that reports this again, if it still holds it.
    pub(crate) async fn again(
        &self,
        store: &dyn Store,
        reported: CommandId,
        worker: &str,
    ) -> Result<Option<Leased>, StoreError> {
        let Some(leased) = self.lock().get(&reported).cloned() else { return Ok(None) };
        let row = store.command(leased.row.id).await?;
        let is_held = row.is_some_and(|row| {
            row.state == CommandState::Claimed && row.worker.as_deref() == Some(worker)
        });
        Ok(is_held.then_some(leased))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<CommandId, Leased>> {
        // Every critical section is one call that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
