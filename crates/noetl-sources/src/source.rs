//! What a source of messages is to the runtime.
//!
//! One file per kind stands behind [`Source`]; [`Sources`] knows them by name. A source hands out
//! messages with a handle each, and forgets one only when that handle says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use noetl_fence::Fence;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::Subscription;

use crate::kafka::Kafka;
use crate::mqtt::Mqtt;
use crate::nats::Nats;
use crate::postgres::Postgres;
use crate::pubsub::Pubsub;
use crate::redis::Redis;

/// Why a source did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It cannot be reached, or lacks what was asked for. That may change.
    #[error("{0}")]
    Away(String),
    /// It cannot be used with these settings.
    #[error("{0}")]
    Settings(String),
}

/// One message, however it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// By what a repeat is known.
    pub id: String,
    pub body: Bytes,
    /// Its headers, in their order; a name may stand there more than once.
    pub headers: Vec<(String, String)>,
    /// What the source itself says of it beside headers.
    pub attributes: Map,
    /// Where it came from.
    pub metadata: Map,
    /// By what the source knows this delivery of it.
    pub ack_id: Option<String>,
}

/// Tells a source what became of one delivery.
#[async_trait]
pub trait Acknowledge: Send + Sync {
    /// It is dealt with. When this returns, the source knows.
    async fn ack(&self) -> Result<(), SourceError>;

    /// It is to come again after a while.
    async fn nack(&self, after: Duration) -> Result<(), SourceError>;

    /// It is not to come again, though it could not be dealt with.
    async fn term(&self) -> Result<(), SourceError>;

    /// It is still being dealt with.
    async fn extend(&self) -> Result<(), SourceError>;
}

/// A message and the handle of its delivery.
pub struct Delivery {
    pub message: Message,
    pub handle: Box<dyn Acknowledge>,
    /// Where it stands among all that came, for those who keep their order.
    pub(crate) arrival: u64,
}

impl Delivery {
    /// A message whose place among others is not known yet.
    pub fn new(message: Message, handle: impl Acknowledge + 'static) -> Self {
        Self { message, handle: Box::new(handle), arrival: 0 }
    }
}

/// Where messages come from.
#[async_trait]
pub trait Source: Send + Sync {
    /// Up to so many messages, as soon as there are any; none after `wait`. What was handed out and
    /// is neither acknowledged nor extended within [`Source::ack_wait`] comes again. Dropping the
    /// call half-way loses nothing, but may hold up what was on its way for so long.
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError>;

    /// Whether what is not acknowledged stays at the source. Default: it does.
    fn keeps(&self) -> bool {
        true
    }

    /// How long the source waits for a word about a message.
    fn ack_wait(&self) -> Duration;

    /// How much waits at the source, what was handed out included; none when nobody can know.
    async fn backlog(&self) -> Result<Option<u64>, SourceError>;

    /// Takes nothing more.
    async fn close(&self);
}

/// Opens sources of one kind.
#[async_trait]
pub trait Open: Send + Sync {
    /// The kind, as documents write it.
    fn kind(&self) -> &'static str;

    /// The source of a subscription. The settings are those of its document with its credential laid
    /// under them.
    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError>;
}

/// Kinds of sources by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sources {
    kinds: HashMap<&'static str, Arc<dyn Open>>,
}

impl Sources {
    /// All kinds there are; those that speak HTTP ask what this fence lets through.
    pub fn standard(fence: Fence) -> Self {
        let servers = Self::default().with(Nats).with(Postgres).with(Redis).with(Mqtt::default());
        servers.with(Kafka::behind(fence.clone())).with(Pubsub::behind(fence))
    }

    /// The same and another kind; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, kind: impl Open + 'static) -> Self {
        self.kinds.insert(kind.kind(), Arc::new(kind));
        self
    }

    /// The kind of this name.
    pub fn get(&self, kind: &str) -> Option<Arc<dyn Open>> {
        self.kinds.get(kind).cloned()
    }
}

/// A setting that is a text; none when it is absent or empty.
pub(crate) fn text<'a>(settings: &'a Map, key: &str) -> Result<Option<&'a str>, SourceError> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(SourceError::Settings(format!("`{key}` must be a text"))),
    }
}

/// A setting that is a whole number.
pub(crate) fn number(settings: &Map, key: &str) -> Result<Option<u64>, SourceError> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let wrong = || SourceError::Settings(format!("`{key}` must be a whole number"));
            value.as_u64().map(Some).ok_or_else(wrong)
        }
    }
}

/// An error with what led to it, each part once.
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

/// What a subscription is called where its source asks for a name: `noetl_` and its path, with `_` for
/// whatever is no letter, digit, `-` or `_`.
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
    fn a_path_becomes_a_name_that_every_source_can_spell() {
        assert_eq!(name_of("subscriptions/orders"), "noetl_subscriptions_orders");
        assert_eq!(name_of("a.b c>*é"), "noetl_a_b_c___");
    }
}
