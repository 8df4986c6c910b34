//! Applies the retention policy once a day, in one process at a time.
//!
//! The process that purges holds a lease and records the time in a cursor, so neither several
//! processes nor restarts purge more often. A purge interrupted by a lost lease or a shutdown is
//! finished by the next one.

use std::sync::Arc;
use std::time::Duration;

use noetl_identity as ids;
use noetl_model::{Clock, Timestamp};
use noetl_store::retention::{PurgeReport, RetentionPolicy};
use noetl_store::{BlobError, Blobs, GcReport, Lease, Store, StoreError, collect_garbage};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Name of the lease, and of the cursor with the time of the last purge.
const NAME: &str = "retention";

/// Duration of the lease, and interval of its renewal. If the holder dies, another process takes
/// over at its first check after the lease expires.
const TTL: Duration = Duration::from_secs(300);
const RENEW_EVERY: Duration = Duration::from_secs(60);

/// Minimum interval between two purges.
const EVERY: Duration = Duration::from_secs(24 * 3600);

/// Interval of the check whether a purge is due.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Age below which an unreferenced blob is not deleted, because the report that refers to it may
/// still be in flight. No report takes nearly as long.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// Result of a purge, or of a dry run.
#[derive(Debug)]
pub struct Purged {
    /// Rows purged from the store.
    pub report: PurgeReport,
    /// Unreferenced blobs deleted. A dry run does not count blobs that the purge itself would free.
    pub content: GcReport,
}

#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    #[error("store is unavailable")]
    Store(#[from] StoreError),
    /// Blobs could not be listed.
    #[error("content could not be listed")]
    Content(#[from] BlobError),
}

/// Deletes the rows that a policy does not retain, and then unreferenced blobs. Idempotent, and
/// safe to run concurrently with anything.
pub async fn purge(
    store: &dyn Store,
    blobs: &dyn Blobs,
    policy: &RetentionPolicy,
    dry_run: bool,
) -> Result<Purged, PurgeError> {
    let report = store.purge(policy, dry_run).await?;
    let content = collect_garbage(blobs, store, GRACE, dry_run).await?;
    for (digest, error) in &content.failed {
        warn!(%digest, %error, "failed to delete unreferenced blob");
    }
    Ok(Purged { report, content })
}

/// Background task that purges by policy.
pub(crate) struct RetentionTask {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) policy: RetentionPolicy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) closing: CancellationToken,
}

impl RetentionTask {
    /// Checks periodically whether a purge is due, until the control plane closes.
    pub(crate) async fn run(self) {
        let holder = format!("{}-{:016x}", std::process::id(), ids::entropy());
        loop {
            let looked = tokio::select! {
                looked = self.look(&holder) => looked,
                () = self.closing.cancelled() => break,
            };
            if let Err(error) = looked {
                warn!(%error, "retention purge failed, retrying at next check");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.closing.cancelled() => break,
            }
        }
        // Released so that the next process need not wait for the lease to expire. If the release
        // fails, the lease expires by itself.
        if let Ok(Some(lease)) = self.store.lease(NAME).await
            && lease.holder == holder
        {
            let _ = self.store.release(&lease).await;
        }
    }

    /// Purges if a purge is due and no other process holds the lease.
    async fn look(&self, holder: &str) -> Result<(), PurgeError> {
        if !self.is_due().await? {
            return Ok(());
        }
        let Some(lease) = self.store.acquire(NAME, holder, TTL).await? else { return Ok(()) };
        // Another process may have finished just before.
        if self.is_due().await? {
            tokio::select! {
                purged = self.purge(&lease) => purged?,
                () = self.lost(&lease) => warn!("retention lease lost to another process"),
            }
        }
        self.store.release(&lease).await?;
        Ok(())
    }

    async fn is_due(&self) -> Result<bool, StoreError> {
        let last = self.store.cursor(NAME).await?.map(Timestamp::from_micros);
        let now = self.clock.now();
        // A time far in the future comes from a wrong clock and must not stop retention until then.
        Ok(last.is_none_or(|last| now.since(last) >= EVERY || last.since(now) >= EVERY))
    }

    async fn purge(&self, lease: &Lease) -> Result<(), PurgeError> {
        let now = self.clock.now();
        let Purged { report, content } =
            purge(&*self.store, &*self.blobs, &self.policy, false).await?;
        self.store.advance(NAME, now.as_micros(), Some(lease)).await?;
        let removed = report.removed;
        info!(
            executions = removed.executions,
            events = removed.events,
            contents = content.removed.len(),
            "retention purge completed"
        );
        Ok(())
    }

    /// Renews the lease, and returns when another process holds it.
    async fn lost(&self, lease: &Lease) {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            match self.store.renew(lease, TTL).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => warn!(%error, "failed to renew retention lease"),
            }
        }
    }
}
