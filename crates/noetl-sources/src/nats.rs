//! Source for NATS: a JetStream stream or a core NATS subject.
//!
//! With `stream`, messages are pulled from a durable consumer and acked individually, so none is
//! lost. Without it, the source subscribes to the subject, and messages published while it is not
//! connected are lost, as usual for core NATS.

mod settings;
mod stream;
mod subject;

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, HeaderMap};
use async_trait::async_trait;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::Subscription;

use self::settings::NatsSettings;
use self::stream::StreamSource;
use self::subject::SubjectSource;
use crate::source::{Source, SourceError, SourceFactory, chain, name_of, text};

/// Time the server has to respond.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Header with the message ID that the publisher assigned.
const ID_HEADER: &str = "Nats-Msg-Id";

/// Opens sources of kind `nats`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nats;

#[async_trait]
impl SourceFactory for Nats {
    fn kind(&self) -> &'static str {
        "nats"
    }

    async fn open(
        &self,
        subscription: &Subscription,
        settings: &Map,
    ) -> Result<Arc<dyn Source>, SourceError> {
        let wanted = NatsSettings::read(settings)?;
        let subject = match text(settings, "topic")? {
            Some(subject) => Some(subject),
            None => text(settings, "subscription")?,
        };
        let named = match text(settings, "consumer")? {
            Some(name) => Some(name),
            None => text(settings, "group")?,
        };
        let name = match named {
            Some(name) if name.contains(['.', '*', '>', ' ', '/', '\\']) => {
                let message =
                    format!("'{name}' cannot name a consumer: use letters, digits, - and _");
                return Err(SourceError::Settings(message));
            }
            Some(name) => name.to_owned(),
            None => name_of(&subscription.path),
        };
        match (text(settings, "stream")?, subject) {
            (Some(stream), subject) => {
                let client = wanted.connect().await?;
                Ok(Arc::new(StreamSource::open(client, stream, &name, subject).await?))
            }
            (None, Some(subject)) => {
                let client = wanted.connect().await?;
                Ok(Arc::new(SubjectSource::open(client, subject, name).await?))
            }
            (None, None) => Err(SourceError::Settings(
                "a nats source needs `stream`, or `topic` for a subject without a stream".into(),
            )),
        }
    }
}

/// Connects to the server in these settings.
pub(crate) async fn client(settings: &Map) -> Result<Client, SourceError> {
    NatsSettings::read(settings)?.connect().await
}

/// Returns an error unless the client is connected.
fn check_connected(client: &Client) -> Result<(), SourceError> {
    match client.connection_state() {
        async_nats::connection::State::Connected => Ok(()),
        _ => Err(SourceError::Away("the connection to the NATS server is lost".to_owned())),
    }
}

fn headers_of(headers: Option<&HeaderMap>) -> Vec<(String, String)> {
    let Some(headers) = headers else { return Vec::new() };
    let pairs = headers.iter().flat_map(|(name, values)| {
        values.iter().map(move |value| (name.to_string(), value.to_string()))
    });
    pairs.collect()
}

/// Returns the ID that the publisher assigned to a message.
fn given_id(headers: Option<&HeaderMap>) -> Option<String> {
    let id = headers?.get(ID_HEADER)?.as_str().trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Returns the headers by name, with the last value of each.
fn attributes(headers: &[(String, String)]) -> Map {
    headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

fn away(what: &str, error: &dyn std::error::Error) -> SourceError {
    SourceError::Away(chain(what, error))
}
