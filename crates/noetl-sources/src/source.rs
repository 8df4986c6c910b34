//! Interface of message sources.
//!
//! Each kind implements [`Source`] in a module of its own, and [`SourceRegistry`](crate::SourceRegistry) maps kind names to them.
//! A source delivers each message with an ack handle and deletes the message only through that
//! handle.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::Subscription;

pub use noetl_playbook::subscription::Message;

/// Errors of operations on a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The source is unavailable or lacks the requested object. A retry may succeed.
    #[error("{0}")]
    Away(String),
    /// The source cannot be used with these settings.
    #[error("{0}")]
    Settings(String),
}

/// Ack handle of one delivery.
#[async_trait]
pub trait DeliveryAck: Send + Sync {
    /// Acks the message. The source has recorded the ack when this returns.
    async fn ack(&self) -> Result<(), SourceError>;

    /// Nacks the message for redelivery after a delay.
    async fn nack(&self, after: Duration) -> Result<(), SourceError>;

    /// Ends redelivery of a message that could not be processed.
    async fn term(&self) -> Result<(), SourceError>;

    /// Extends the ack deadline while the message is processed.
    async fn extend(&self) -> Result<(), SourceError>;
}

/// A message and its ack handle.
pub struct Delivery {
    pub message: Message,
    pub handle: Box<dyn DeliveryAck>,
    /// Arrival order among all messages of a subscription; used by the spool.
    pub(crate) arrival: u64,
}

impl Delivery {
    /// Creates a delivery without an arrival number.
    pub fn new(message: Message, handle: impl DeliveryAck + 'static) -> Self {
        Self { message, handle: Box::new(handle), arrival: 0 }
    }
}

/// An open source of messages.
#[async_trait]
pub trait Source: Send + Sync {
    /// Waits up to `wait` for messages and returns up to `most`, or none when the wait ends. A
    /// message that is neither acked nor extended within [`Source::ack_wait`] is redelivered.
    /// Dropping the future loses no message, but may delay messages in transit by that time.
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError>;

    /// Returns `true` if unacked messages stay at the source. Default: `true`.
    fn keeps(&self) -> bool {
        true
    }

    /// Returns the ack deadline of a delivery.
    fn ack_wait(&self) -> Duration;

    /// Returns the number of unacked messages at the source, delivered ones included, or `None` if
    /// it cannot be determined.
    async fn backlog(&self) -> Result<Option<u64>, SourceError>;

    /// Stops fetching and closes the connection.
    async fn close(&self);
}

/// Opens sources of one kind.
#[async_trait]
pub trait SourceFactory: Send + Sync {
    /// Returns the kind as written in documents.
    fn kind(&self) -> &'static str;

    /// Opens the source of a subscription. `settings` combines the document's connection settings
    /// with its credential; the document takes precedence.
    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError>;
}

/// Returns a string setting, or `None` if it is absent or empty.
pub(crate) fn text<'a>(settings: &'a Map, key: &str) -> Result<Option<&'a str>, SourceError> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(SourceError::Settings(format!("`{key}` must be a text"))),
    }
}

/// Returns an unsigned integer setting, or `None` if it is absent.
pub(crate) fn number(settings: &Map, key: &str) -> Result<Option<u64>, SourceError> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || SourceError::Settings(format!("`{key}` must be a whole number"));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    }
}

/// Formats an error with its chain of sources, without repetitions.
pub(crate) fn chain(what: &str, error: &dyn std::error::Error) -> String {
    let mut message = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(because) = cause {
        let text = because.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = because.source();
    }
    message
}

/// Returns a subscription's default name at its source, such as a consumer name: `noetl_` and the
/// path, with `_` for every character other than ASCII letters, digits, `-`, and `_`.
pub(crate) fn name_of(path: &str) -> String {
    let spelled = path.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_') => letter,
        _ => '_',
    });
    format!("noetl_{}", spelled.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_name_that_is_valid_for_every_source() {
        assert_eq!(name_of("subscriptions/orders"), "noetl_subscriptions_orders");
        assert_eq!(name_of("a.b c>*é"), "noetl_a_b_c___");
    }
}
