//! Source for a JetStream stream, read through a durable consumer.

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::pull::{Config, FetchBuilder};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, PullConsumer};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, ContextBuilder};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::stream::ConsumerErrorKind;
use async_nats::{Client, jetstream};
use async_trait::async_trait;
use futures::StreamExt as _;
use noetl_model::{Map, Value};

use super::{TIMEOUT, attributes, away, check_connected, given_id, headers_of};
use crate::source::{Delivery, DeliveryAck, Message, Source, SourceError};

/// Ack deadline of a consumer created by this source.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Maximum number of unacked messages of a consumer created by this source.
const ACK_PENDING_MAX: i64 = 10_000;

/// Maximum bytes per fetch. A larger message is fetched alone.
const BYTES_MAX: usize = 16 << 20;

pub(super) struct StreamSource {
    client: Client,
    consumer: PullConsumer,
    ack_wait: Duration,
}

impl StreamSource {
    /// Opens the consumer of this name, creating it if the stream has none.
    pub(super) async fn open(
        client: Client,
        stream: &str,
        name: &str,
        filter: Option<&str>,
    ) -> Result<Self, SourceError> {
        let context = ContextBuilder::new().timeout(TIMEOUT).build(client.clone());
        let stream_handle = context.get_stream(stream).await;
        let stream_handle =
            stream_handle.map_err(|error| away(&format!("stream '{stream}'"), &error))?;
        let config = Config {
            durable_name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            deliver_policy: DeliverPolicy::All,
            max_ack_pending: ACK_PENDING_MAX,
            filter_subject: filter.unwrap_or_default().to_owned(),
            ..Config::default()
        };
        // An existing consumer is used unchanged. Creating it again would overwrite its settings.
        let consumer = match stream_handle.consumer_info(name).await {
            Ok(info) if info.config.deliver_subject.is_some() => {
                let message =
                    format!("consumer '{name}' pushes its messages; a subscription fetches them");
                return Err(SourceError::Settings(message));
            }
            Ok(_) => {
                let there = stream_handle.get_consumer::<Config>(name).await;
                there.map_err(|error| away(&format!("consumer '{name}'"), &*error))?
            }
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                let made = stream_handle.create_consumer(config).await;
                made.map_err(|error| match error.kind() {
                    ConsumerErrorKind::JetStream(refused) => SourceError::Settings(format!(
                        "consumer '{name}' of stream '{stream}' cannot be made: {refused}"
                    )),
                    _ => away(&format!("consumer '{name}' of stream '{stream}'"), &error),
                })?
            }
            Err(error) => return Err(away(&format!("consumer '{name}'"), &error)),
        };
        let ack_wait = check(&consumer, name)?;
        Ok(Self { client, consumer, ack_wait })
    }

    async fn read(&self, fetch: FetchBuilder<'_>) -> Result<Vec<jetstream::Message>, Fetched> {
        let mut batch = fetch
            .messages()
            .await
            .map_err(|error| Fetched::Failed(away("messages are not fetched", &error)))?;
        let mut messages = Vec::new();
        while let Some(message) = batch.next().await {
            match message {
                Ok(message) => messages.push(message),
                Err(error) if is_too_large(&*error) => {
                    // The earlier messages are complete; this one is the first of the next fetch.
                    return if messages.is_empty() { Err(Fetched::TooLarge) } else { Ok(messages) };
                }
                // Returns the earlier messages. The next fetch reports the error if it persists.
                Err(_) if !messages.is_empty() => break,
                Err(error) => return Err(Fetched::Failed(away("messages are lost", &*error))),
            }
        }
        Ok(messages)
    }
}

/// Reason a fetch returned no messages.
enum Fetched {
    /// The next message exceeds the byte limit.
    TooLarge,
    Failed(SourceError),
}

fn is_too_large(error: &dyn std::error::Error) -> bool {
    error.to_string().contains("Message Size Exceeds MaxBytes")
}

/// Returns the consumer's ack deadline, or an error unless it requires explicit acks.
fn check(consumer: &Consumer<Config>, name: &str) -> Result<Duration, SourceError> {
    let config = &consumer.cached_info().config;
    if config.ack_policy != AckPolicy::Explicit {
        let wrong = "must have the ack policy 'explicit', so that each message has its own word";
        return Err(SourceError::Settings(format!("consumer '{name}' {wrong}")));
    }
    let wait = Some(config.ack_wait).filter(|wait| !wait.is_zero());
    Ok(wait.unwrap_or(ACK_WAIT))
}

#[async_trait]
impl Source for StreamSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        check_connected(&self.client)?;
        let most = most.max(1);
        let now = || self.consumer.fetch().max_messages(most).max_bytes(BYTES_MAX);
        let messages = match self.read(now()).await {
            Ok(messages) if !messages.is_empty() => Ok(messages),
            // Waits for one message only, so that it is returned as soon as it arrives.
            Ok(_) => {
                let first = self.consumer.batch().max_messages(1).expires(wait).messages().await;
                let mut first = first.map_err(|error| away("messages are not fetched", &error))?;
                match first.next().await {
                    Some(Ok(message)) => Ok(vec![message]),
                    Some(Err(error)) => Err(away("messages are lost", &*error)),
                    None => Ok(Vec::new()),
                }
            }
            Err(Fetched::TooLarge) => {
                match self.read(self.consumer.fetch().max_messages(1)).await {
                    Ok(messages) => Ok(messages),
                    Err(Fetched::Failed(error)) => Err(error),
                    Err(Fetched::TooLarge) => Ok(Vec::new()),
                }
            }
            Err(Fetched::Failed(error)) => Err(error),
        }?;
        // A lost connection looks like an empty stream.
        if messages.is_empty() {
            check_connected(&self.client)?;
        }
        Ok(messages.into_iter().map(delivery).collect())
    }

    fn ack_wait(&self) -> Duration {
        self.ack_wait
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        check_connected(&self.client)?;
        let info = self.consumer.get_info().await;
        let info = info.map_err(|error| away("the consumer is not known", &error))?;
        let in_flight = u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX);
        Ok(Some(info.num_pending.saturating_add(in_flight)))
    }

    async fn close(&self) {
        // The last acks may still be in transit.
        let _ = tokio::time::timeout(TIMEOUT, self.client.drain()).await;
    }
}

struct NatsAck(Acker);

#[async_trait]
impl DeliveryAck for NatsAck {
    async fn ack(&self) -> Result<(), SourceError> {
        self.0.double_ack().await.map_err(|error| away("not acknowledged", &*error))
    }

    async fn nack(&self, after: Duration) -> Result<(), SourceError> {
        let after = (!after.is_zero()).then_some(after);
        self.0.ack_with(AckKind::Nak(after)).await.map_err(|error| away("failed to nack", &*error))
    }

    async fn term(&self) -> Result<(), SourceError> {
        let acked = self.0.double_ack_with(AckKind::Term).await;
        acked.map_err(|error| away("not acknowledged", &*error))
    }

    async fn extend(&self) -> Result<(), SourceError> {
        self.0
            .ack_with(AckKind::Progress)
            .await
            .map_err(|error| away("failed to extend the ack wait", &*error))
    }
}

fn delivery(message: jetstream::Message) -> Delivery {
    let mut metadata = Map::new();
    metadata.insert("subject".to_owned(), Value::from(message.subject.as_str()));
    let mut place = None;
    if let Ok(info) = message.info() {
        place = Some(format!("{}:{}", info.stream, info.stream_sequence));
        metadata.extend([
            ("stream".to_owned(), Value::from(info.stream)),
            ("consumer".to_owned(), Value::from(info.consumer)),
            ("stream_sequence".to_owned(), Value::from(info.stream_sequence)),
            ("delivered".to_owned(), Value::from(info.delivered)),
            ("published_at".to_owned(), Value::from(info.published.to_string())),
        ]);
    }
    let headers = headers_of(message.headers.as_ref());
    let id = given_id(message.headers.as_ref()).or(place);
    let ack_id = message.reply.as_ref().map(ToString::to_string);
    let (message, acker) = message.split();
    let message = Message {
        // Every stream message has a sequence number. Without it, only the delivery is known.
        id: id.or_else(|| ack_id.clone()).unwrap_or_default(),
        attributes: attributes(&headers),
        body: message.payload,
        headers,
        metadata,
        ack_id,
    };
    Delivery::new(message, NatsAck(acker))
}
