//! Follows the log of one database and publishes every committed row, in the order of its lanes.
//!
//! One process does it at a time: whoever has the lease `event_stream_tailer` of that database. How
//! far it came is a cursor per lane in the same database, moved only under that lease and only
//! forward, after the stream has said that it keeps the rows. So a crash anywhere, or a process that
//! wakes up long after others took over, repeats messages and loses none; the stream knows a repeat
//! by its id.
//!
//! A bus that is away is waited for. A row that the bus will not take is skipped after a few tries
//! and counted; it holds up nobody.

mod follow;
mod held;
mod page;

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_store::{Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::follow::Followed;
use self::held::Held;
use crate::ids;
use crate::publishing::{PublishingOptions, pause};
use crate::stream_metrics::StreamMetrics;

/// The name of the lease, and how the names of cursors begin.
const NAME: &str = "event_stream_tailer";

/// Who holds the lease of a database that has one owner: the next process goes on at once, because
/// there is no other that could still be at it.
const OWNER: &str = "owner";

pub(crate) struct Tailer {
    /// The database in messages.
    database: Arc<str>,
    store: Arc<dyn Store>,
    bus: Arc<dyn EventStream>,
    options: PublishingOptions,
    metrics: Arc<StreamMetrics>,
    /// Changes when this process has committed something.
    woken: watch::Receiver<()>,
    holder: String,
}

impl Tailer {
    pub(crate) fn new(
        database: Arc<str>,
        store: Arc<dyn Store>,
        bus: Arc<dyn EventStream>,
        options: PublishingOptions,
        metrics: Arc<StreamMetrics>,
        woken: watch::Receiver<()>,
    ) -> Self {
        let holder = match store.is_shared() {
            true => format!("{}-{:016x}", std::process::id(), ids::entropy()),
            false => OWNER.to_owned(),
        };
        Self { database, store, bus, options, metrics, woken, holder }
    }

    /// Follows, or waits for its turn, until this is told to close.
    pub(crate) async fn run(self, closing: CancellationToken) {
        tokio::select! {
            () = self.take_turns() => {}
            () = closing.cancelled() => {}
        }
        // The next need not wait for the lease to end; without an answer it ends by itself.
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
                        warn!(database, %error, "the event log cannot be followed; trying again");
                    }
                    pause(failures)
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// One holding of the lease, if it can be had; and how long to rest after it.
    async fn turn(&self) -> Result<Duration, StoreError> {
        let ttl = self.options.lease;
        let Some(held) = Held::take(&*self.store, NAME, &self.holder, ttl).await? else {
            self.metrics.set_oldest(&self.database, None);
            return Ok(ttl / 3);
        };
        let followed = tokio::select! {
            followed = self.follow(&held) => followed?,
            () = held.lost(&*self.store) => Followed::Fenced,
        };
        match followed {
            Followed::Fenced => {
                info!(database = &*self.database, "another process follows the event log");
                Ok(ttl / 3)
            }
            // Another process may be better connected; it has had a moment to step in when this one
            // asks again. The cursors are there, so nothing that is committed meanwhile is missed.
            Followed::BusAway => {
                held.release(&*self.store).await?;
                let _ = tokio::time::timeout(ttl / 3, self.bus.connected()).await;
                Ok(self.options.poll.min(ttl / 3))
            }
        }
    }
}
