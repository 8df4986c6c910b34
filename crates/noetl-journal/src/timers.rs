//! Fires timers: wakeups, timeouts, notifications, and messages from one execution to another.
//!
//! Timers are written in the transaction that decided them. Any process on the database may claim
//! one and fires it at least once.

mod fire;

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Clock, TimerId};
use noetl_store::{JournalStore, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::executions::Executions;
use crate::journal::Journal;
use crate::notifications::Notifications;

/// Timers claimed at a time.
const PAGE: usize = 100;

/// Duration of the lease on a claimed timer. A timer that fails to fire is retried after that.
const LENT_FOR: Duration = Duration::from_secs(30);

/// Interval between reads of the timer table while nothing is due. Finds timers written by a
/// process that has died.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Pause after a store error while timers were read, claimed, or deleted.
const REST: Duration = Duration::from_secs(10);

/// Fires the timers of one database.
pub(crate) struct TimerService {
    pub(crate) store: Arc<dyn JournalStore>,
    /// Store that finds executions on any shard.
    pub(crate) everywhere: Arc<dyn JournalStore>,
    pub(crate) journal: Journal,
    pub(crate) executions: Executions,
    pub(crate) notices: Notifications,
    pub(crate) clock: Arc<dyn Clock>,
    /// Notified when this process writes a timer.
    pub(crate) written: Arc<Notify>,
    pub(crate) closing: CancellationToken,
}

impl TimerService {
    pub(crate) async fn run(self) {
        loop {
            let pause = match self.deliver().await {
                Ok(pause) => pause,
                Err(error) => {
                    warn!(%error, "failed to process timers, retrying");
                    REST
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.written.notified() => {}
                () = self.closing.cancelled() => return,
            }
        }
    }

    /// Fires the timers that are due and returns the time until the next check.
    async fn deliver(&self) -> Result<Duration, StoreError> {
        let Some(next) = self.store.next_due().await? else { return Ok(LOOK_EVERY) };
        let wait = next.since(self.clock.now());
        if !wait.is_zero() {
            return Ok(wait.min(LOOK_EVERY));
        }
        let rows = self.store.claim_due(PAGE, LENT_FOR).await?;
        if rows.is_empty() {
            // The store's clock is behind this process, or another process claimed the timers.
            return Ok(Duration::from_secs(1));
        }
        let delivered = rows.iter().map(|row| self.fire(row));
        let delivered = futures::future::join_all(delivered).await;
        let done: Vec<TimerId> = rows
            .iter()
            .zip(delivered)
            .filter_map(|(row, is_done)| is_done.then_some(row.id))
            .collect();
        self.store.delete_timers(&done).await?;
        Ok(Duration::ZERO)
    }
}
