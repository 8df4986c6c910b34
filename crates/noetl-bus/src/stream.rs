//! Publishing side of the bus.

use async_trait::async_trait;

use crate::StreamSettings;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMessage {
    /// Dot-separated tokens of letters, digits, `_`, `-`, and `:`.
    pub subject: String,
    /// Deduplication ID, unique within the stream's duplicate window.
    pub id: String,
    pub payload: Vec<u8>,
}

/// Outcome of publishing a message that the stream has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishAck {
    /// The message is stored.
    New,
    /// A message with this ID was already stored, so this one was dropped.
    Known,
}

/// Errors of publishing one message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The bus is unavailable, and it is unknown whether the message was stored. Publish this
    /// message and all later ones again.
    #[error("message bus is unavailable: {0}")]
    Away(String),
    /// No stream covers this subject: it was never created or was deleted. Nothing was stored.
    #[error("no stream takes this subject")]
    NoStream,
    /// The message exceeds the bus's size limit. Nothing was stored.
    #[error("{bytes} bytes are more than the bus takes")]
    TooLarge { bytes: usize },
    /// The bus rejected the message, regardless of its sender. Nothing was stored.
    #[error("bus rejected the message: {0}")]
    Refused(String),
}

impl PublishError {
    /// Returns `true` if the message itself is at fault rather than the bus, so publishing it again
    /// fails the same way.
    pub fn is_own_fault(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::Refused(_) => true,
            Self::Away(_) | Self::NoStream => false,
        }
    }
}

/// Errors of operations on the bus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The bus is not connected or did not respond in time.
    #[error("message bus is unavailable: {0}")]
    Away(String),
    /// The bus rejected the request.
    #[error("the bus refuses: {0}")]
    Refused(String),
}

/// A stream that stores published messages until their retention period ends.
#[async_trait]
pub trait EventStream: Send + Sync {
    /// Creates the stream and its consumers if they don't exist. Leaves existing ones unchanged
    /// even if their settings differ, because an operator may have changed them on purpose.
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError>;

    /// Publishes messages and returns one outcome per message, in order. All are in flight at once.
    ///
    /// Messages are stored in the order of the batch. A message that fails through its own fault
    /// ([`PublishError::is_own_fault`]) doesn't affect the others. If the outcome of some messages
    /// is unknown, no later message is stored unless those are stored too. A caller that publishes
    /// again from the first of them therefore preserves the order.
    async fn publish(&self, batch: Vec<StreamMessage>) -> Vec<Result<PublishAck, PublishError>>;

    /// Returns the maximum payload size in bytes, or `None` while the limit is unknown.
    fn payload_max(&self) -> Option<usize>;

    /// Returns `true` if the bus is currently connected.
    fn is_connected(&self) -> bool;

    /// Waits until the bus is connected. Returns immediately if it already is.
    async fn connected(&self);
}
