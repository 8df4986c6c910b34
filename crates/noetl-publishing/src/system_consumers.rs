//! Consumers of the event stream in a server process, for deployments without a system pool.
//!
//! The *materializer* stores rows like `events/project`: those of executions that another control
//! plane drives, so they can be listed, shown, and replayed here too. The *projector* advances
//! snapshots of executions like `projection/advance`. Both use the durable names of external
//! consumers, so servers and system pools share the messages.
//!
//! A message is acknowledged once its content is stored; if the process dies before that, it is
//! redelivered. A message that no store can accept is counted, logged, and acknowledged, so it does
//! not block others.

mod materializer;
mod projector;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use materializer::Materializer;
use noetl_bus::{CommandConsumer, Delivery, ReadError};
use noetl_journal::Metrics;
use noetl_store::StoreError;
use noetl_views::Projections;
use projector::Projector;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::event_stream::{MATERIALIZER, PROJECTOR, PublisherOptions, RETRY, STREAM};
use crate::import::ImportService;

/// Messages read at a time, as in external consumers. They are in memory together.
const BATCH: usize = 200;

/// Maximum duration of one fetch. A quiet stream costs one request in that time.
const WAIT: Duration = Duration::from_secs(10);

/// Consumers to run in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemConsumers {
    /// Whether to import rows of executions of other control planes. Default: `false`.
    pub materialize: bool,
    /// Whether to advance snapshots. Default: `false`.
    pub project: bool,
}

impl SystemConsumers {
    /// Returns `true` if any consumer is enabled.
    pub const fn any(self) -> bool {
        self.materialize || self.project
    }
}

/// Running consumer tasks. Close them before the stores.
pub struct SystemConsumersHandle {
    closing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl SystemConsumersHandle {
    /// Starts the consumers. Waits for an unavailable bus, and creates a missing stream and its
    /// consumers with the settings in `publishing`.
    pub fn start(
        readers: SystemConsumers,
        publishing: &PublisherOptions,
        bus: &Arc<dyn CommandConsumer>,
        imports: &ImportService,
        projections: &Projections,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let closing = CancellationToken::new();
        let read = |name: &'static str, work: Arc<dyn MessageHandler>| {
            let reader =
                SystemConsumer { name, work, bus: bus.clone(), publishing: publishing.clone() };
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
            tasks.push(read(
                MATERIALIZER,
                Arc::new(Materializer::new(imports.clone(), metrics.clone())),
            ));
        }
        if readers.project {
            tasks.push(read(PROJECTOR, Arc::new(Projector::new(projections.clone()))));
        }
        Self { closing, tasks }
    }

    /// Stops the consumers. Messages that are not acknowledged are redelivered.
    pub async fn close(self) {
        self.closing.cancel();
        for task in self.tasks {
            // A task that panicked needs no cleanup.
            let _ = task.await;
        }
    }
}

/// Message handler of a consumer.
#[async_trait]
trait MessageHandler: Send + Sync {
    /// Processes messages. On failure, returns the indexes of the messages to redeliver, and the
    /// reason.
    async fn deal(&self, given: &[Delivery]) -> Result<(), NotYet>;
}

/// Messages to redeliver, by index, with the reason.
#[derive(Debug)]
struct NotYet {
    indexes: Vec<usize>,
    why: StoreError,
}

impl NotYet {
    fn any_of(given: &[Delivery], why: StoreError) -> Self {
        Self { indexes: (0..given.len()).collect(), why }
    }
}

struct SystemConsumer {
    name: &'static str,
    work: Arc<dyn MessageHandler>,
    bus: Arc<dyn CommandConsumer>,
    publishing: PublisherOptions,
}

impl SystemConsumer {
    async fn read_all(&self) {
        let mut failures: u32 = 0;
        loop {
            self.bus.connected().await;
            match self.turn().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    if failures.is_power_of_two() {
                        warn!(reader = self.name, failures, %error, "failed to consume event stream");
                    }
                    tokio::time::sleep(RETRY.delay(failures)).await;
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
        let later: &[usize] = dealt.as_ref().err().map_or(&[], |not_yet| &not_yet.indexes);
        let (mut done, mut nacked) = (Vec::new(), Vec::new());
        for (index, message) in given.into_iter().enumerate() {
            let receipts = if later.contains(&index) { &mut nacked } else { &mut done };
            receipts.push(message.receipt);
        }
        self.bus.done(&done).await;
        self.bus.nack(&nacked).await;
        dealt.map_err(|not_yet| not_yet.why.to_string())
    }
}
