//! What a stream and its consumers are made with.

use std::time::Duration;

/// A stream as it is made when there is none of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    pub name: String,
    /// The subjects it keeps; `>` stands for one token or more.
    pub subjects: Vec<String>,
    /// For how long a message id is known, so that a repeat is not kept again.
    pub duplicate_window: Duration,
    /// For how long a message is kept.
    pub age_max: Duration,
    /// Who reads it. Each remembers how far it came.
    pub consumers: Vec<Consumer>,
}

/// A durable reader of a stream: it pulls, says of every message that it is done with it, and begins
/// with the oldest one there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    pub name: String,
    /// The subjects it reads.
    pub filter: String,
    /// How long it may take for a message before that is handed out again, without end.
    pub ack_wait: Duration,
}
