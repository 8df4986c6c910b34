//! Publishes committed events to the event stream, by a tailer or a relay.
//!
//! Both publish only committed events, and both publish an event again if its outcome is unknown:
//! the stream deduplicates messages by ID. The tailer follows the log by position; the relay
//! empties the outbox. Either suffices, so at most one runs.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_bus::EventStream;
use noetl_journal::Metrics;
use noetl_model::Clock;
use noetl_store::PublishingStore;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::event_stream::PublisherOptions;
use crate::relay::Relay;
use crate::stream_metrics::StreamMetrics;
use crate::tailer::Tailer;

/// Running publisher tasks. Close them before the stores.
pub struct PublisherHandle {
    closing: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl PublisherHandle {
    /// Starts a tailer for each of these databases. The name identifies the database in messages.
    /// One process at a time follows a database. `commits` changes when this process has committed.
    pub fn tail(
        options: &PublisherOptions,
        databases: Vec<(String, Arc<dyn PublishingStore>)>,
        bus: &Arc<dyn EventStream>,
        commits: &watch::Receiver<()>,
        clock: &Arc<dyn Clock>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let metrics = Arc::new(StreamMetrics::new(metrics.clone(), clock.clone()));
        let closing = CancellationToken::new();
        let follow = |(name, store): (String, Arc<dyn PublishingStore>)| {
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

    /// Starts a relay for the outbox of this store. Several processes may run one.
    pub fn relay(
        options: &PublisherOptions,
        store: Arc<dyn PublishingStore>,
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

    /// Stops the tasks. The next publisher continues with committed events that are not published.
    pub async fn close(self) {
        self.closing.cancel();
        for task in self.tasks {
            // A task that panicked needs no cleanup.
            let _ = task.await;
        }
    }
}
