//! What waits in a stream for those who read it.

use async_trait::async_trait;

use crate::subject::is_of;
use crate::{BusError, Consumer, EventStream};

/// How a stream stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Told apart by this: a stream that was deleted and made again has another one.
    pub made: i128,
    /// Number of its newest message; 0 when it never had one.
    pub last: u64,
    /// Its durable readers, in no order.
    pub consumers: Vec<ConsumerState>,
}

/// How a reader of a stream stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerState {
    pub name: String,
    /// The subjects it reads; all of the stream's when empty.
    pub filters: Vec<String>,
    /// Messages it has not been given yet.
    pub pending: u64,
    /// Messages it was given and has not said to be done with.
    pub unacknowledged: u64,
}

impl ConsumerState {
    /// Whether it reads messages of this subject.
    pub fn reads(&self, subject: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| is_of(subject, filter))
    }

    /// Messages that are still to be dealt with.
    pub fn backlog(&self) -> u64 {
        self.pending.saturating_add(self.unacknowledged)
    }
}

/// A bus that can be asked what those who read a stream have not dealt with yet, so that whoever
/// publishes can tell a message that was lost from one that waits.
#[async_trait]
pub trait CommandBus: EventStream {
    /// How a stream stands; `None` when there is no such stream.
    async fn state(&self, stream: &str) -> Result<Option<StreamState>, BusError>;

    /// Removes the messages of a subject filter up to the one with this number.
    async fn discard(&self, stream: &str, filter: &str, until: u64) -> Result<(), BusError>;

    /// Lets a reader that is there read other subjects. What was kept before may pass it by.
    async fn redirect(&self, stream: &str, consumer: &Consumer) -> Result<(), BusError>;
}
