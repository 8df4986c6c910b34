//! The event stream: its settings, consumers, and limits.

use std::time::Duration;

use noetl_bus::{Consumer, EventStream, StreamSettings};
use noetl_model::ExponentialBackoff;

/// Name of the event stream.
pub(crate) const STREAM: &str = "noetl_events";

/// Subjects of the stream, and filter of its consumers.
const SUBJECTS: &str = "noetl.events.>";

/// Consumer that advances snapshots.
pub(crate) const PROJECTOR: &str = "noetl_projector";

/// Consumer that stores published rows, as `events/project` does.
pub(crate) const MATERIALIZER: &str = "noetl_materializer";

/// Consumers of the stream, under the names that system pools expect.
const CONSUMERS: [&str; 3] = [PROJECTOR, MATERIALIZER, "noetl_result_materializer"];

/// Time a consumer may take to acknowledge a message.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Maximum payload size in bytes, whatever the bus allows. Other consumers of the stream rely on
/// it.
const PAYLOAD_MAX: usize = 900 * 1024;

/// Settings of a tailer or relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherOptions {
    /// Rows published at a time. Default: 500.
    pub batch: usize,
    /// Poll interval for rows of other processes, and delay after a failure. Default: 500 ms.
    pub poll: Duration,
    /// Whether a database without a cursor is followed from its first row. Default: `false`, from
    /// its latest.
    pub backfill: bool,
    /// Dedup window of the stream. Applies when the stream is created. Default: 120 s.
    pub duplicate_window: Duration,
    /// Maximum age of messages. Applies when the stream is created. Default: 24 hours.
    pub age_max: Duration,
    /// Duration of the tailer's lease on a database. Default: 15 s.
    pub lease: Duration,
}

impl Default for PublisherOptions {
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

impl PublisherOptions {
    /// Returns the settings with which the stream is created if it does not exist.
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

/// Returns the maximum payload size on this bus, in bytes.
pub(crate) fn payload_limit(bus: &dyn EventStream) -> usize {
    bus.payload_max().map_or(PAYLOAD_MAX, |most| most.min(PAYLOAD_MAX))
}

/// Backoff after consecutive failures of the bus or the store.
pub(crate) const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(100), Duration::from_secs(5));
