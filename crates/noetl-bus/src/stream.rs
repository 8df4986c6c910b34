//! The seam to a stream of events.

use async_trait::async_trait;

use crate::StreamSettings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where: tokens of letters, digits, `_`, `-` and `:`, parted by dots.
    pub subject: String,
    /// By which a repeat is known within the stream's window.
    pub id: String,
    pub payload: Vec<u8>,
}

/// What became of a message the stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is kept now.
    New,
    /// One with its id was kept before, and this one is not.
    Known,
}

/// Why a message has no answer that it is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The bus did not answer: it is not known whether the message is kept. Publish it again, and
    /// what was sent after it as well.
    #[error("the bus did not answer: {0}")]
    Away(String),
    /// No stream takes this subject: it was never made, or is gone. Nothing was kept.
    #[error("no stream takes this subject")]
    NoStream,
    /// The message is larger than what is taken. Nothing was kept.
    #[error("{bytes} bytes are more than the bus takes")]
    TooLarge {
        /// Bytes of its payload.
        bytes: usize,
    },
    /// The bus does not take this message, whoever sends it. Nothing was kept.
    #[error("the bus refuses it: {0}")]
    Refused(String),
}

impl PublishError {
    /// Whether it is the message and not the bus that something is wrong with, so that a repeat
    /// ends the same way.
    pub fn is_own_fault(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::Refused(_) => true,
            Self::Away(_) | Self::NoStream => false,
        }
    }
}

/// A bus that could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// It is not connected, or did not answer in time.
    #[error("the bus did not answer: {0}")]
    Away(String),
    /// It answered that it will not.
    #[error("the bus refuses: {0}")]
    Refused(String),
}

/// A stream that keeps what is published until it is old.
#[async_trait]
pub trait EventStream: Send + Sync {
    /// Makes the stream and its consumers where they are missing. What is there stays as it is,
    /// whatever its settings: somebody may have changed them on purpose.
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError>;

    /// Publishes messages and answers for each, in order. All are under way at once.
    ///
    /// Those that are kept are kept in the order they are given. One that comes to nothing for its
    /// own fault ([`PublishError::is_own_fault`]) keeps no other from being kept. When some are
    /// without an answer, no message after them is kept unless they are too; so whoever publishes
    /// again from the first of them on keeps the order.
    async fn publish(&self, batch: Vec<Message>) -> Vec<Result<Stored, PublishError>>;

    /// The most bytes a payload may have; `None` while that is not known.
    fn payload_max(&self) -> Option<usize>;

    /// Whether the bus is reached just now.
    fn is_connected(&self) -> bool;

    /// Resolves once the bus is reached; at once when it is.
    async fn connected(&self);
}
