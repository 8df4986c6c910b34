//! Publishes every committed row of one database, in the order of its commit lanes.
//!
//! One process does so at a time: the holder of the database's lease `event_stream_tailer`. Its
//! progress is a cursor per commit lane in the same database, moved only under that lease and only
//! forward, after the stream has acknowledged the rows. So a crash at any point, or a process that
//! resumes long after another took over, repeats messages and loses none; the stream deduplicates
//! them by ID.
//!
//! The tailer waits for an unavailable bus. A row that the bus rejects is skipped and counted after
//! a few attempts, and does not block others.

mod follow;
mod lease;
mod page;

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_identity as ids;
use noetl_store::{PublishingStore, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::follow::FollowExit;
use self::lease::TailerLease;
use crate::event_stream::{PublisherOptions, RETRY};
use crate::stream_metrics::StreamMetrics;

/// Name of the lease, and prefix of the cursor names.
const NAME: &str = "event_stream_tailer";

/// Lease holder in a database with one owner. The next process acquires the lease at once, because
/// no other can still hold it.
const OWNER: &str = "owner";

pub(crate) struct Tailer {
    /// Name of the database in messages.
    database: Arc<str>,
    store: Arc<dyn PublishingStore>,
    bus: Arc<dyn EventStream>,
    options: PublisherOptions,
    metrics: Arc<StreamMetrics>,
    /// Changes when this process has committed.
    woken: watch::Receiver<()>,
    holder: String,
}

impl Tailer {
    pub(crate) fn new(
        database: Arc<str>,
        store: Arc<dyn PublishingStore>,
        bus: Arc<dyn EventStream>,
        options: PublisherOptions,
        metrics: Arc<StreamMetrics>,
        woken: watch::Receiver<()>,
    ) -> Self {
        let holder = match store.is_shared() {
            true => format!("{}-{:016x}", std::process::id(), ids::entropy()),
            false => OWNER.to_owned(),
        };
        Self { database, store, bus, options, metrics, woken, holder }
    }

    /// Publishes, or waits for the lease, until `closing` fires.
    pub(crate) async fn run(self, closing: CancellationToken) {
        tokio::select! {
            () = self.take_turns() => {}
            () = closing.cancelled() => {}
        }
        // Released so that the next process need not wait. If the release fails, the lease expires
        // by itself.
        if let Ok(Some(lease)) = self.store.lease(NAME).await
            && lease.holder == self.holder
        {
            let _ = self.store.release(&lease).await;
        }
    }

    async fn take_turns(&self) {
        let mut failures = 0;
        loop {
            let rest = match self.turn().await {
                Ok(rest) => {
                    failures = 0;
                    rest
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        let database = &*self.database;
                        warn!(database, %error, "event log tailing failed, retrying");
                    }
                    RETRY.delay(failures)
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// Publishes for one term of the lease, if it can be acquired. Returns the pause before the
    /// next attempt.
    async fn turn(&self) -> Result<Duration, StoreError> {
        let ttl = self.options.lease;
        let Some(held) = TailerLease::take(&*self.store, NAME, &self.holder, ttl).await? else {
            self.metrics.set_oldest(&self.database, None);
            return Ok(ttl / 3);
        };
        let followed = tokio::select! {
            followed = self.follow(&held) => followed?,
            () = held.wait_lost(&*self.store) => FollowExit::Fenced,
        };
        match followed {
            FollowExit::Fenced => {
                info!(database = &*self.database, "tailer lease lost to another process");
                Ok(ttl / 3)
            }
            // Another process may have a connection to the bus, and has had a moment to acquire the
            // lease when this one retries. The cursors exist, so nothing committed in the meantime
            // is missed.
            FollowExit::BusAway => {
                held.release(&*self.store).await?;
                let _ = tokio::time::timeout(ttl / 3, self.bus.connected()).await;
                Ok(self.options.poll.min(ttl / 3))
            }
        }
    }
}
