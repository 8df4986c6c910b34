//! The look for leases that have ended. It exists because a worker elsewhere that dies says nothing.
//!
//! Each look is one statement, which finds nothing in a small index while all is well. What it takes
//! comes again if it cannot be dealt with now, and no two processes take the same at a time; if they
//! did, the second would find the command over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use noetl_engine::{Expire, Input};
use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::{CommandId, CommandState};
use noetl_store::{CommandRow, HeldCommand, Store, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Held;
use crate::journal::{Journal, SubmitError};
use crate::lost_reports::LostReports;
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
    pub(crate) lost: LostReports,
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
            let causes = self.causes(&ended).await?;
            let ended = ended.into_iter().map(|row| {
                let cause = causes.get(&row.id).map(String::as_str);
                self.expire(row, cause)
            });
            stream::iter(ended).for_each_concurrent(TOGETHER, |expired| expired).await;
            if is_last || self.closing.is_cancelled() {
                return Ok(count);
            }
        }
    }

    /// Returns why leases ended that got an earlier limit because reports may be lost.
    async fn causes(&self, ended: &[CommandRow]) -> Result<HashMap<CommandId, String>, StoreError> {
        if ended.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<CommandId> = ended.iter().map(|row| row.id).collect();
        let held = self.store.held(&ids).await?.into_iter();
        // A lease that ended before its limit did so for another reason.
        let taken = |held: &HeldCommand| held.until.minus(AGAIN);
        let limit = |held: &HeldCommand| held.at_most.filter(|at_most| *at_most <= taken(held));
        let cause = |held: HeldCommand| Some((held.id, self.lost.cause(limit(&held)?)?));
        Ok(held.filter_map(cause).collect())
    }

    async fn expire(&self, row: CommandRow, cause: Option<&str>) {
        let worker = row.worker.as_deref().unwrap_or_default();
        let reason = match (cause, row.state) {
            (Some(cause), _) => {
                format!("{cause}, and worker '{worker}' sent no report of this command since then")
            }
            // Ours never say that they begin, so it may have.
            (None, CommandState::Claimed) => {
                format!("worker '{worker}' took it and was not heard of in time")
            }
            (None, _) => format!("worker '{worker}' fell silent, or held it for too long"),
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
