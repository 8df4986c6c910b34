//! Consuming side of the bus: pulls messages through existing durable consumers.

use std::time::Duration;

use async_trait::async_trait;

use crate::CommandBus;

/// A message that was delivered and must be acked or nacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Subject the message was published on.
    pub subject: String,
    pub payload: Vec<u8>,
    /// Handle that identifies this delivery to the bus in [`CommandConsumer::done`] and
    /// [`CommandConsumer::nack`].
    pub receipt: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The bus is not connected or did not respond in time.
    #[error("message bus is unavailable: {0}")]
    Away(String),
    /// The stream or one of the consumers was never created or was deleted.
    #[error("consumer not found")]
    NoReader,
}

/// A bus whose existing consumers can be pulled from. Never creates a consumer, so that a name
/// other processes rely on cannot end up with a different configuration.
#[async_trait]
pub trait CommandConsumer: CommandBus {
    /// Pulls up to `max` messages from these consumers of a stream. Returns the available messages
    /// at once, or else waits up to `wait` for the first and returns it with those that arrived
    /// with it. Returns an empty list when the wait ends. Callers that share a consumer name
    /// receive different messages.
    async fn next(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, ReadError>;

    /// Acks messages. Reports no failure, because the bus redelivers an unacked message after the
    /// consumer's `ack_wait`.
    async fn done(&self, receipts: &[String]);

    /// Nacks messages, so that the bus redelivers them at once, possibly to another process.
    async fn nack(&self, receipts: &[String]);
}
