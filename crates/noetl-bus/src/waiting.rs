//! State of a stream and the backlog of its consumers.

use async_trait::async_trait;

use crate::subject::is_of;
use crate::{BusError, Consumer, EventStream};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Identity of this incarnation: a stream that is deleted and created again has a different
    /// value.
    pub made: i128,
    /// Sequence number of the newest message; 0 if there has never been one.
    pub last: u64,
    /// Durable consumers, in no particular order.
    pub consumers: Vec<ConsumerState>,
}

/// State of a durable consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerState {
    pub name: String,
    /// Subject filters. Empty means all subjects of the stream.
    pub filters: Vec<String>,
    /// Number of messages not delivered yet.
    pub pending: u64,
    /// Number of messages delivered and not acked.
    pub unacknowledged: u64,
}

impl ConsumerState {
    /// Returns `true` if the consumer's filters match this subject.
    pub fn reads(&self, subject: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| is_of(subject, filter))
    }

    /// Returns the number of messages not acked yet, whether delivered or not.
    pub fn backlog(&self) -> u64 {
        self.pending.saturating_add(self.unacknowledged)
    }
}

/// A bus that reports the backlog of a stream's consumers, so that a publisher can tell a lost
/// message from a pending one.
#[async_trait]
pub trait CommandBus: EventStream {
    /// Returns the state of a stream, or `None` if it doesn't exist.
    async fn state(&self, stream: &str) -> Result<Option<StreamState>, BusError>;

    /// Deletes the messages that match a subject filter, up to and including sequence number
    /// `until`.
    async fn discard(&self, stream: &str, filter: &str, until: u64) -> Result<(), BusError>;

    /// Changes the subject filter of an existing consumer. The consumer may skip messages stored
    /// before the change.
    async fn redirect(&self, stream: &str, consumer: &Consumer) -> Result<(), BusError>;
}
