//! Readers of the event stream in the process of a server, for whoever runs no system pool.
//!
//! The *materialiser* keeps the rows that come by, as `events/project` does: those of executions that
//! another control plane drives, so that they are listed, shown and replayed here too. The *projector*
//! brings the snapshots of the executions it hears of up to date, as `projection/advance` does. Each
//! reads under the durable name that external ones use, so that servers, and pools beside them, share
//! what there is.
//!
//! A message is answered for once the store has what it says; whoever dies before that leaves it to
//! the next. One that no store will ever keep is counted, logged and answered for, so that it does
//! not hold up the others.

mod materializer;
mod projector;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_bus::{CommandReader, Given, ReadError};
use noetl_store::StoreError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::publishing::{MATERIALIZER, PROJECTOR, PublishingOptions, STREAM, pause};
use crate::service::Control;
use materializer::Materializer;
use projector::Projector;

/// Messages read at a time, as external readers do: they are in memory together.
const BATCH: usize = 200;

/// How long one call for messages waits; a quiet stream costs a message each time.
const WAIT: Duration = Duration::from_secs(10);

/// Which readers run in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemReaders {
    /// Keeps rows of executions from elsewhere. Default: no.
    pub materialize: bool,
    /// Brings snapshots up to date. Default: no.
    pub project: bool,
}

impl SystemReaders {
    /// Whether there is anything to run.
    pub const fn any(self) -> bool {
        self.materialize || self.project
    }
}

/// Readers under way. Close them before the stores.
pub struct SystemReading {
    closing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl SystemReading {
    /// Begins to read. A bus that is away is waited for; stream and readers are made as
    /// `publishing` says where they are missing.
    pub fn start(
        readers: SystemReaders,
        publishing: &PublishingOptions,
        bus: &Arc<dyn CommandReader>,
        control: &Control,
    ) -> Self {
        let closing = CancellationToken::new();
        let read = |name: &'static str, work: Arc<dyn Work>| {
            let reader = Reader { name, work, bus: bus.clone(), publishing: publishing.clone() };
            let closing = closing.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = reader.read_all() => {}
                    () = closing.cancelled() => {}
                }
            })
        };
        let mut tasks = Vec::new();
        if readers.materialize {
            tasks.push(read(MATERIALIZER, Arc::new(Materializer::of(control))));
        }
        if readers.project {
            tasks.push(read(PROJECTOR, Arc::new(Projector::of(control))));
        }
        Self { closing, tasks }
    }

    /// Stops. What was read and not answered for is given to the next who reads.
    pub async fn close(self) {
        self.closing.cancel();
        for task in self.tasks {
            // One that panicked has nothing left to do.
            let _ = task.await;
        }
    }
}

/// What is done with the messages of one reader.
#[async_trait]
trait Work: Send + Sync {
    /// Deals with messages. Names those to be given again, by their places, with the reason.
    async fn deal(&self, given: &[Given]) -> Result<(), NotYet>;
}

/// Messages that could not be dealt with now.
#[derive(Debug)]
struct NotYet {
    places: Vec<usize>,
    why: StoreError,
}

impl NotYet {
    fn any_of(given: &[Given], why: StoreError) -> Self {
        Self { places: (0..given.len()).collect(), why }
    }
}

struct Reader {
    name: &'static str,
    work: Arc<dyn Work>,
    bus: Arc<dyn CommandReader>,
    publishing: PublishingOptions,
}

impl Reader {
    async fn read_all(&self) {
        let mut failures: u32 = 0;
        loop {
            self.bus.connected().await;
            match self.turn().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if failures.is_power_of_two() {
                        warn!(reader = self.name, failures, %error, "the event stream is not read");
                    }
                    tokio::time::sleep(pause(failures)).await;
                }
            }
        }
    }

    async fn turn(&self) -> Result<(), String> {
        let readers = [self.name.to_owned()];
        let given = match self.bus.next(STREAM, &readers, BATCH, WAIT).await {
            Ok(given) => given,
            Err(ReadError::NoReader) => {
                let made = self.bus.ensure(&self.publishing.stream()).await;
                return made.map_err(|error| error.to_string());
            }
            Err(error) => return Err(error.to_string()),
        };
        if given.is_empty() {
            return Ok(());
        }
        let dealt = self.work.deal(&given).await;
        let later: &[usize] = dealt.as_ref().err().map_or(&[], |not_yet| &not_yet.places);
        let (mut done, mut again) = (Vec::new(), Vec::new());
        for (place, message) in given.into_iter().enumerate() {
            let receipts = if later.contains(&place) { &mut again } else { &mut done };
            receipts.push(message.receipt);
        }
        self.bus.done(&done).await;
        self.bus.again(&again).await;
        dealt.map_err(|not_yet| not_yet.why.to_string())
    }
}
