//! Lease reaper: expires overdue leases, because a remote worker that dies sends no report.
//!
//! Each scan is one statement on a small index that is empty while no lease is overdue. A lease
//! that cannot be expired now is found again after [`AGAIN`], and two processes do not claim the
//! same lease at once; if they did, the second would find that the command has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use noetl_engine::{Expire, Input};
use noetl_journal::{Journal, LostReports, Metrics, SubmitError};
use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::{CommandId, CommandState};
use noetl_store::{ActiveLease, CommandRow, RemoteStore, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::lease_activity::LeaseActivity;

/// Scan interval while remote workers hold leases. Much shorter than a lease.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Scan interval when this process has seen no lease activity recently. Covers leases granted by
/// another process that has died.
const LOOK_IDLE: Duration = Duration::from_secs(60);

/// Delay before a claimed lease is found again if it could not be expired.
const AGAIN: Duration = Duration::from_secs(30);

/// Overdue leases claimed at a time.
const PAGE: usize = 200;

/// Maximum number of concurrent submissions. More would delay other journal inputs.
const TOGETHER: usize = 32;

pub(crate) struct LeaseReaper {
    pub(crate) store: Arc<dyn RemoteStore>,
    pub(crate) journal: Journal,
    pub(crate) held: LeaseActivity,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lost: LostReports,
    /// Duration of a renewable lease.
    pub(crate) lease: Duration,
    pub(crate) closing: CancellationToken,
}

impl LeaseReaper {
    /// Scans periodically until the control plane closes.
    pub(crate) async fn run(self) {
        // No renewal could arrive while no server ran, so wait one lease before the first scan.
        let mut rest = self.lease;
        let mut seen = self.held.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                // A lease granted now cannot expire before a scan one [`LOOK_EVERY`] away.
                Ok(()) = seen.changed(), if rest == LOOK_IDLE => {
                    rest = LOOK_EVERY;
                    continue;
                }
                () = self.closing.cancelled() => return,
            }
            if let Err(error) = self.reap().await {
                warn!(%error, "lease scan failed, retrying at next interval");
            }
            seen.mark_unchanged();
            rest = if self.held.may_have_leases() { LOOK_EVERY } else { LOOK_IDLE };
        }
    }

    /// Expires every overdue lease. Returns their number.
    pub(crate) async fn reap(&self) -> Result<usize, StoreError> {
        let mut count = 0;
        loop {
            let ended = self.store.claim_expired(PAGE, AGAIN).await?;
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

    /// Returns the reason for each lease that expired early because reports may be lost.
    async fn causes(&self, ended: &[CommandRow]) -> Result<HashMap<CommandId, String>, StoreError> {
        if ended.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<CommandId> = ended.iter().map(|row| row.id).collect();
        let held = self.store.held(&ids).await?.into_iter();
        // A lease that expired before its limit did so for another reason.
        let taken = |held: &ActiveLease| held.until.minus(AGAIN);
        let limit = |held: &ActiveLease| held.at_most.filter(|at_most| *at_most <= taken(held));
        let cause = |held: ActiveLease| Some((held.id, self.lost.cause(limit(&held)?)?));
        Ok(held.filter_map(cause).collect())
    }

    async fn expire(&self, row: CommandRow, cause: Option<&str>) {
        let worker = row.worker.as_deref().unwrap_or_default();
        let reason = match (cause, row.state) {
            (Some(cause), _) => {
                format!("{cause}, and worker '{worker}' sent no report of this command since then")
            }
            // Remote workers do not report a start, so the command may have run.
            (None, CommandState::Claimed) => {
                format!(
                    "worker '{worker}' claimed the command and sent no report before its lease expired"
                )
            }
            (None, _) => format!(
                "worker '{worker}' did not renew its lease, or held the command for too long"
            ),
        };
        info!(execution.id = %row.execution, command.id = %row.id, worker, "lease expired");
        let input =
            Expire { command: row.id, reason, attempts_max: ATTEMPTS_MAX, may_have_run: true };
        match self.journal.submit(row.execution, Input::Expire(input)).await {
            Ok(_) => self.metrics.leases_ended.inc(),
            // The command has ended in the meantime.
            Err(SubmitError::Refused(_)) => {}
            Err(error) => {
                warn!(execution.id = %row.execution, %error, "failed to expire command lease, retrying");
            }
        }
    }
}
