//! Committed events on their way to the event stream, by the tailer or by the relay.
//!
//! Both publish what is committed and never what is not, and both publish again what they are not
//! sure of: the stream knows a message by its id. The tailer follows the log by position; the relay
//! empties the outbox. One of them is enough, so there is at most one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{Consumer, EventStream, StreamSettings};
use noetl_model::Clock;
use noetl_store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::relay::Relay;
use crate::stream_metrics::StreamMetrics;
use crate::tailer::Tailer;

/// The stream of events.
pub(crate) const STREAM: &str = "noetl_events";

/// What it keeps, and what each of its consumers reads.
const SUBJECTS: &str = "noetl.events.>";

/// Who brings snapshots up to date.
pub(crate) const PROJECTOR: &str = "noetl_projector";

/// Who keeps rows elsewhere.
pub(crate) const MATERIALIZER: &str = "noetl_materializer";

/// Who reads the stream, by the names that system pools look for.
const CONSUMERS: [&str; 3] = [PROJECTOR, MATERIALIZER, "noetl_result_materializer"];

/// How long a consumer may take for a message.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// The most bytes of a payload, whatever the bus takes: what other readers of the stream expect.
const PAYLOAD_MAX: usize = 900 * 1024;

/// How events are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishingOptions {
    /// Rows published at a time. Default: 500.
    pub batch: usize,
    /// How long to wait for new rows of other processes, or after a failure. Default: 500 ms.
    pub poll: Duration,
    /// Whether a database that was never followed is followed from its first row. Default: no, from
    /// its newest.
    pub backfill: bool,
    /// For how long the stream knows a message's id. Counts when the stream is made. Default: 120 s.
    pub duplicate_window: Duration,
    /// For how long the stream keeps a message. Counts when the stream is made. Default: a day.
    pub age_max: Duration,
    /// How long others wait for whoever follows a database before they do. Default: 15 s.
    pub lease: Duration,
}

impl Default for PublishingOptions {
    fn default() -> Self {
        Self {
            batch: 500,
            poll: Duration::from_millis(500),
            backfill: false,
            duplicate_window: Duration::from_secs(120),
            age_max: Duration::from_secs(24 * 3600),
            lease: Duration::from_secs(15),
        }
    }
}

impl PublishingOptions {
    /// The stream as it is made when there is none.
    pub fn stream(&self) -> StreamSettings {
        let consumer = |name: &str| Consumer {
            name: name.to_owned(),
            filter: SUBJECTS.to_owned(),
            ack_wait: ACK_WAIT,
        };
        StreamSettings {
            name: STREAM.to_owned(),
            subjects: vec![SUBJECTS.to_owned()],
            duplicate_window: self.duplicate_window,
            age_max: self.age_max,
            consumers: CONSUMERS.map(consumer).into(),
        }
    }
}

/// The most bytes a payload may have on this bus.
pub(crate) fn payload_limit(bus: &dyn EventStream) -> usize {
    bus.payload_max().map_or(PAYLOAD_MAX, |most| most.min(PAYLOAD_MAX))
}

/// How long to wait after so many failures in a row: from a tenth of a second to five.
pub(crate) fn pause(failures: u32) -> Duration {
    Duration::from_millis((50_u64 << failures.min(7)).min(5000))
}

/// Publishing under way. Close it before the stores.
pub struct Publishing {
    closing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Publishing {
    /// Follows the logs of these databases, each with a name for messages. Each is followed by one
    /// process at a time. `commits` changes when this process has committed something.
    pub fn tail(
        options: &PublishingOptions,
        databases: Vec<(String, Arc<dyn Store>)>,
        bus: &Arc<dyn EventStream>,
        commits: &watch::Receiver<()>,
        clock: &Arc<dyn Clock>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let metrics = Arc::new(StreamMetrics::new(metrics.clone(), clock.clone()));
        let closing = CancellationToken::new();
        let follow = |(name, store): (String, Arc<dyn Store>)| {
            let tailer = Tailer::new(
                name.into(),
                store,
                bus.clone(),
                options.clone(),
                metrics.clone(),
                commits.clone(),
            );
            tokio::spawn(tailer.run(closing.clone()))
        };
        let tasks = databases.into_iter().map(follow).collect();
        Self { closing, tasks }
    }

    /// Empties the outbox of this store. Several processes may do so at once.
    pub fn relay(
        options: &PublishingOptions,
        store: Arc<dyn Store>,
        bus: &Arc<dyn EventStream>,
        commits: &watch::Receiver<()>,
        clock: &Arc<dyn Clock>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let metrics = Arc::new(StreamMetrics::new(metrics.clone(), clock.clone()));
        let closing = CancellationToken::new();
        let relay = Relay {
            store,
            bus: bus.clone(),
            options: options.clone(),
            metrics,
            woken: commits.clone(),
            refused: HashMap::new(),
        };
        let tasks = vec![tokio::spawn(relay.run(closing.clone()))];
        Self { closing, tasks }
    }

    /// Stops. What is committed and not published is published by the next who follows.
    pub async fn close(self) {
        self.closing.cancel();
        for task in self.tasks {
            // One that panicked has nothing left to do.
            let _ = task.await;
        }
    }
}
