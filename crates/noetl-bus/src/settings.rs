//! Configuration of streams and consumers.

use std::time::Duration;

/// Stream configuration, applied only when no stream of this name exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    pub name: String,
    /// Subjects the stream stores. `>` matches one or more tokens.
    pub subjects: Vec<String>,
    /// Period within which the stream drops a message whose ID it has already stored.
    pub duplicate_window: Duration,
    /// Retention period of a message.
    pub age_max: Duration,
    /// Durable consumers of the stream. Each has its own position.
    pub consumers: Vec<Consumer>,
}

/// A durable pull consumer with explicit acks, starting at the oldest stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    pub name: String,
    /// Filter of the subjects to consume.
    pub filter: String,
    /// Time until an unacked message is redelivered. The number of redeliveries is unlimited.
    pub ack_wait: Duration,
}
