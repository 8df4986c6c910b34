//! Removes what is old once a day, in one process at a time, when there is a policy.
//!
//! Who does it holds a lease, and notes in a cursor when it was done, so that neither several
//! processes nor restarts make it more often. A purge that is cut short, by a lost lease or by a
//! stop, is finished by the next.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Clock, Timestamp};
use noetl_store::retention::{Policy, Report};
use noetl_store::{BlobError, Blobs, Collected, Lease, Store, StoreError, collect};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ids;

/// The name of the lease, and of the cursor that says when it was last done.
const NAME: &str = "retention";

/// How long the lease lasts, and how often it is renewed: whoever died in the middle is replaced
/// at the next look after the first.
const TTL: Duration = Duration::from_secs(300);
const RENEW_EVERY: Duration = Duration::from_secs(60);

/// How often it is done.
const EVERY: Duration = Duration::from_secs(24 * 3600);

/// How often to look whether it is to be done.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Content that was put this recently stays though nothing refers to it: its reference may still be
/// on its way. No report takes anywhere near this long.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// What a purge did, or in a dry run would have done.
#[derive(Debug)]
pub struct Purged {
    /// In the store.
    pub report: Report,
    /// To content that nothing refers to. A dry run knows of none that the purge itself would free.
    pub content: Collected,
}

/// Why a purge was not finished.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
    /// The place of content did not answer.
    #[error("content could not be listed")]
    Content(#[from] BlobError),
}

/// Removes what a policy lets go, and then content that nothing refers to. Can be repeated, and run
/// beside anything.
pub async fn purge(
    store: &dyn Store,
    blobs: &dyn Blobs,
    policy: &Policy,
    dry_run: bool,
) -> Result<Purged, PurgeError> {
    let report = store.purge(policy, dry_run).await?;
    let content = collect(blobs, store, GRACE, dry_run).await?;
    for (digest, error) in &content.failed {
        warn!(%digest, %error, "content is not removed yet");
    }
    Ok(Purged { report, content })
}

/// Purges by itself.
pub(crate) struct Retainer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) policy: Policy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) closing: CancellationToken,
}

impl Retainer {
    /// Looks now and then until the control plane closes.
    pub(crate) async fn run(self) {
        let holder = format!("{}-{:016x}", std::process::id(), ids::entropy());
        loop {
            let looked = tokio::select! {
                looked = self.look(&holder) => looked,
                () = self.closing.cancelled() => break,
            };
            if let Err(error) = looked {
                warn!(%error, "what is old is not removed yet");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.closing.cancelled() => break,
            }
        }
        // Cut short or not, the next process need not wait for the lease to end. Without an answer
        // it ends by itself.
        if let Ok(Some(lease)) = self.store.lease(NAME).await
            && lease.holder == holder
        {
            let _ = self.store.release(&lease).await;
        }
    }

    /// Purges if that is due and nobody else does.
    async fn look(&self, holder: &str) -> Result<(), PurgeError> {
        if !self.is_due().await? {
            return Ok(());
        }
        let Some(lease) = self.store.acquire(NAME, holder, TTL).await? else { return Ok(()) };
        // Another process may have been done with it just before.
        if self.is_due().await? {
            tokio::select! {
                purged = self.purge(&lease) => purged?,
                () = self.lost(&lease) => warn!("another process goes on with retention"),
            }
        }
        self.store.release(&lease).await?;
        Ok(())
    }

    async fn is_due(&self) -> Result<bool, StoreError> {
        let last = self.store.cursor(NAME).await?.map(Timestamp::from_micros);
        let now = self.clock.now();
        // A time far ahead is of a clock that was wrong; it must not stop retention until then.
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
            "what was old is removed"
        );
        Ok(())
    }

    /// Renews the lease, and returns when it is another's.
    async fn lost(&self, lease: &Lease) {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            match self.store.renew(lease, TTL).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => warn!(%error, "the lease of retention was not renewed"),
            }
        }
    }
}
