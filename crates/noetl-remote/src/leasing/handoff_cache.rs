//! Remembers handoffs: commands returned with the response to a completion.
//!
//! If the response is lost, the worker resends the completion, which has no further effect. By then
//! the worker holds a lease on a command it has not received, so the handoff is sent again.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CommandId, CommandState};
use noetl_store::{RemoteStore, StoreError};

use super::LeasedRow;

/// Maximum number of remembered handoffs: the responses in flight, and some more. If a handoff is
/// evicted before its response arrives, the worker loses the command when the lease expires.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// Handed-off commands by the ID of the completed command. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HandoffCache(Arc<Mutex<LruCache<CommandId, LeasedRow>>>);

impl Default for HandoffCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(REMEMBERED_MAX))))
    }
}

impl HandoffCache {
    pub(crate) fn remember(&self, reported: CommandId, leased: LeasedRow) {
        self.lock().put(reported, leased);
    }

    /// Returns the command handed off with the completion of `reported`, if the worker still holds
    /// its lease.
    pub(crate) async fn resend(
        &self,
        store: &dyn RemoteStore,
        reported: CommandId,
        worker: &str,
    ) -> Result<Option<LeasedRow>, StoreError> {
        let Some(leased) = self.lock().get(&reported).cloned() else { return Ok(None) };
        let row = store.command(leased.row.id).await?;
        let is_held = row.is_some_and(|row| {
            row.state == CommandState::Claimed && row.worker.as_deref() == Some(worker)
        });
        Ok(is_held.then_some(leased))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<CommandId, LeasedRow>> {
        // Each critical section is one call that cannot panic midway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
