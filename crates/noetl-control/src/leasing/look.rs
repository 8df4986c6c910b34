//! The look for leases that have ended. It exists because a worker elsewhere that dies says nothing.
//!
//! Each look is one statement, which finds nothing in a small index while all is well. What it takes
//! comes again if it cannot be dealt with now, and no two processes take the same at a time; if they
//! did, the second would find the command over.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use noetl_engine::{Expire, Input};
use noetl_model::CommandState;
use noetl_model::command::ATTEMPTS_MAX;
use noetl_store::{CommandRow, Store, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Held;
use crate::journal::{Journal, SubmitError};
use crate::metrics::Metrics;

/// How often to look while workers elsewhere hold something. A lease is longer by far.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often to look when this process has seen no lease for a while: another one that gave some may
/// be gone.
const LOOK_IDLE: Duration = Duration::from_secs(60);

/// When a lease that could not be dealt with is found again.
const AGAIN: Duration = Duration::from_secs(30);

/// Leases taken at a time.
const PAGE: usize = 200;

/// How many are submitted at a time: all of them at once would keep others waiting.
const TOGETHER: usize = 32;

pub(crate) struct LeaseLook {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) journal: Journal,
    pub(crate) held: Held,
    pub(crate) metrics: Arc<Metrics>,
    /// How long a lease lasts that its holder renews.
    pub(crate) lease: Duration,
    pub(crate) closing: CancellationToken,
}

impl LeaseLook {
    /// Looks now and then until the control plane closes.
    pub(crate) async fn run(self) {
        // While nobody was here, nobody could be heard of.
        let mut rest = self.lease;
        let mut seen = self.held.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                // None that begins now ends sooner than the next look would be.
                Ok(()) = seen.changed(), if rest == LOOK_IDLE => {
                    rest = LOOK_EVERY;
                    continue;
                }
                () = self.closing.cancelled() => return,
            }
            if let Err(error) = self.look().await {
                warn!(%error, "ended leases are not looked for yet");
            }
            seen.mark_unchanged();
            rest = if self.held.is_likely() { LOOK_EVERY } else { LOOK_IDLE };
        }
    }

    /// Deals with every lease that has ended. How many there were.
    pub(crate) async fn look(&self) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            let ended = self.store.take_ended(PAGE, AGAIN).await?;
            let is_last = ended.len() < PAGE;
            count += ended.len();
            stream::iter(ended).for_each_concurrent(TOGETHER, |row| self.expire(row)).await;
            if is_last || self.closing.is_cancelled() {
                return Ok(count);
            }
        }
    }

    async fn expire(&self, row: CommandRow) {
        let worker = row.worker.as_deref().unwrap_or_default();
        let reason = match row.state {
            // Ours never say that they begin, so it may have.
            CommandState::Claimed => {
                format!("worker '{worker}' took it and was not heard of in time")
            }
            _ => format!("worker '{worker}' fell silent, or held it for too long"),
        };
        info!(execution.id = %row.execution, command.id = %row.id, worker, "a lease has ended");
        let input =
            Expire { command: row.id, reason, attempts_max: ATTEMPTS_MAX, may_have_run: true };
        match self.journal.submit(row.execution, Input::Expire(input)).await {
            Ok(_) => self.metrics.leases_ended.inc(),
            // Over meanwhile.
            Err(SubmitError::Refused(_)) => {}
            Err(error) => {
                warn!(execution.id = %row.execution, %error, "a command is still held by nobody");
            }
        }
    }
}
