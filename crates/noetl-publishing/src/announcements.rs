//! Announces pending commands to workers that listen on a bus.
//!
//! The bus carries only wakeups; the commands are in the database. The process that committed a
//! command announces it once the commit is durable. A periodic scan recovers lost announcements:
//! after a crash, a bus outage, or the deletion of the stream. It compares the number of pending
//! commands of a pool with the backlog of the pool's consumers. If the backlog is smaller, it
//! announces the pending commands again, each with a growing interval.
//!
//! There is no leader. Announcements carry IDs by which the stream deduplicates them, a command can
//! be claimed only once, and the claim of a superfluous announcement is rejected, which ends it.

mod announcer;
mod message;
mod retries;

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{CommandBus, StreamSettings};
use noetl_journal::{AnnouncementQueue, JournalService, PendingAnnouncement};
use noetl_store::PublishingStore;
use noetl_work::COMMAND_STREAM;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::announcer::Announcer;
use self::message::Routes;

/// Name of the announcement stream.
const STREAM: &str = COMMAND_STREAM;

const SUBJECTS: [&str; 2] = ["noetl.commands", "noetl.commands.>"];

/// Time for which the stream deduplicates announcement IDs.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Time for which the stream stores an announcement. Commands that are pending longer are announced
/// again.
const AGE_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncerOptions {
    /// Base URL at which workers reach this server to claim and report. Never empty.
    pub server_url: String,
    /// Number of subjects that commands of pool `system` are spread over. Values below 1 count as
    /// 1.
    pub system_shards: u32,
    /// Interval of the scan for lost announcements. Default: 10 s.
    pub look_every: Duration,
}

impl AnnouncerOptions {
    /// Creates the default options for a server that workers reach at `server_url`.
    pub fn new(server_url: &str) -> Self {
        Self {
            server_url: server_url.trim_end_matches('/').to_owned(),
            system_shards: 1,
            look_every: Duration::from_secs(10),
        }
    }

    /// Returns the settings with which the stream and its initial consumers are created.
    pub fn stream(&self) -> StreamSettings {
        Routes::new(self).settings()
    }
}

/// Handle of the running announcer. Close it before the stores.
pub struct AnnouncerHandle {
    closing: CancellationToken,
    task: JoinHandle<()>,
    queue: AnnouncementQueue,
}

impl AnnouncerHandle {
    /// Starts announcing the commands that the journal commits, and those pending in `databases`
    /// without an announcement.
    pub fn start(
        options: &AnnouncerOptions,
        databases: Vec<Arc<dyn PublishingStore>>,
        bus: Arc<dyn CommandBus>,
        journal: &JournalService,
    ) -> Self {
        let queue = journal.announcements();
        let announcer = Announcer {
            routes: Routes::new(options),
            every: options.look_every,
            databases,
            bus,
            metrics: journal.metrics.clone(),
            notes: queue.begin(),
            missed: queue.take_overflowed(),
        };
        let closing = CancellationToken::new();
        let task = tokio::spawn(announcer.run(closing.clone()));
        Self { closing, task, queue }
    }

    /// Stops the announcer. Another process, or the next start, announces commands that were
    /// committed but not announced.
    pub async fn close(self) {
        self.queue.end();
        self.closing.cancel();
        // A task that panicked needs no cleanup.
        let _ = self.task.await;
    }
}
