//! Wakes workers that listen on a bus: tells them which commands wait for them.
//!
//! The bus carries wake-ups and nothing else; what waits is in the database. A command is announced
//! once its commit is durable, by the process that committed it. Whatever is lost on the way (a
//! process that died, a bus that was away, a stream that somebody deleted) is found by a look: how
//! many commands wait in a pool is compared with how many announcements its readers have not dealt
//! with, and where those are fewer, what waits is announced again, each command after a longer while.
//!
//! No process leads. Announcements carry ids by which the stream knows a repeat, a claim takes a
//! command once, and an announcement too many is answered with a refusal that ends it.

mod announcer;
mod message;
mod notes;
mod readers;
mod tries;

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{CommandBus, StreamSettings};
use noetl_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::announcer::Announcer;
use self::message::Routes;
pub(crate) use self::notes::{Announcements, Note};
pub use self::readers::readers_of;
use crate::service::Control;

/// The stream of announcements.
const STREAM: &str = "noetl_commands";

/// The stream that commands are announced on.
pub const COMMAND_STREAM: &str = STREAM;

/// The subjects it keeps.
const SUBJECTS: [&str; 2] = ["noetl.commands", "noetl.commands.>"];

/// For how long the stream knows an announcement's id.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// For how long it keeps one. What waits longer is announced again.
const AGE_MAX: Duration = Duration::from_secs(3600);

/// How commands are announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncingOptions {
    /// Where a worker claims and reports: this server as others reach it. Never empty.
    pub server_url: String,
    /// Over how many subjects the commands of pool `system` are spread; one when it is 1 or less.
    pub system_shards: u32,
    /// How often it is looked whether something was lost. Default: 10 s.
    pub look_every: Duration,
}

impl AnnouncingOptions {
    /// For a server that is reached under this address.
    pub fn new(server_url: &str) -> Self {
        Self {
            server_url: server_url.trim_end_matches('/').to_owned(),
            system_shards: 1,
            look_every: Duration::from_secs(10),
        }
    }

    /// The stream as it is made when there is none, with those who read it from the start.
    pub fn stream(&self) -> StreamSettings {
        Routes::new(self).settings()
    }
}

/// Announcing under way. Close it before the stores.
pub struct Announcing {
    closing: CancellationToken,
    task: JoinHandle<()>,
    notes: Announcements,
}

impl Announcing {
    /// Announces what a control plane commits, and what waits in these databases unannounced.
    pub fn start(
        options: &AnnouncingOptions,
        databases: Vec<Arc<dyn Store>>,
        bus: Arc<dyn CommandBus>,
        control: &Control,
    ) -> Self {
        let notes = control.announcements().clone();
        let announcer = Announcer {
            routes: Routes::new(options),
            every: options.look_every,
            databases,
            bus,
            metrics: control.metrics.clone(),
            notes: notes.begin(),
            missed: notes.missed(),
        };
        let closing = CancellationToken::new();
        let task = tokio::spawn(announcer.run(closing.clone()));
        Self { closing, task, notes }
    }

    /// Stops. What is committed and not announced is announced by another process, or by the next.
    pub async fn close(self) {
        self.notes.end();
        self.closing.cancel();
        // One that panicked has nothing left to do.
        let _ = self.task.await;
    }
}
