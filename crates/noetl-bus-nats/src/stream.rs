//! Bus traits implemented on JetStream.

use async_nats::jetstream::consumer::{self, pull};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, Info};
use async_nats::jetstream::context::{
    CreateStreamErrorKind, GetStreamErrorKind, PublishAckFuture, PublishErrorKind,
};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{ErrorCode, context};
use async_trait::async_trait;
use futures::TryStreamExt;
use futures::future::join_all;
use noetl_bus::{
    BusError, CommandBus, Consumer, ConsumerState, EventStream, PublishAck, PublishError,
    StreamMessage, StreamSettings, StreamState,
};
use tokio::time::timeout;

use crate::address::Address;
use crate::connection::{NatsConnection, Session, TIMEOUT};

/// Bytes reserved for headers next to the payload. The only header is the message ID, which is far
/// smaller.
const HEADERS_MAX: usize = 1024;

/// A bus on a NATS server.
pub struct NatsStream {
    pub(crate) connection: NatsConnection,
}

impl NatsStream {
    /// Starts to connect and returns at once. Must be called within a Tokio runtime.
    pub fn open(address: Address) -> Self {
        Self { connection: NatsConnection::open(address) }
    }

    pub(crate) fn session(&self) -> Option<Session> {
        self.connection.session()
    }
}

pub(crate) const NOT_CONNECTED: &str = "it is not connected";

#[async_trait]
impl EventStream for NatsStream {
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError> {
        let session = self.session().ok_or_else(|| BusError::Away(NOT_CONNECTED.to_owned()))?;
        let stream = stream(&session, settings).await?;
        for consumer in &settings.consumers {
            let made = stream.get_or_create_consumer(&consumer.name, pull_config(consumer));
            made.await.map_err(|error| away(&error))?;
        }
        Ok(())
    }

    async fn publish(&self, batch: Vec<StreamMessage>) -> Vec<Result<PublishAck, PublishError>> {
        let Some(session) = self.session() else {
            let away = PublishError::Away(NOT_CONNECTED.to_owned());
            return vec![Err(away); batch.len()];
        };
        let mut sent = Vec::with_capacity(batch.len());
        for message in batch {
            // After a message that may be lost, none is sent: it could be stored before the lost
            // one.
            let is_broken = matches!(sent.last(), Some(Err(PublishError::Away(_))));
            sent.push(match is_broken {
                true => Err(PublishError::Away("an earlier message is not sent".to_owned())),
                false => send(&session, message).await,
            });
        }
        join_all(sent.into_iter().map(|sent| answer(&session, sent))).await
    }

    fn payload_max(&self) -> Option<usize> {
        self.session().map(|session| payload_max(&session))
    }

    fn is_connected(&self) -> bool {
        self.connection.is_there()
    }

    async fn connected(&self) {
        self.connection.there().await;
    }
}

#[async_trait]
impl CommandBus for NatsStream {
    async fn state(&self, stream: &str) -> Result<Option<StreamState>, BusError> {
        let session = self.session().ok_or_else(|| BusError::Away(NOT_CONNECTED.to_owned()))?;
        let stream = match session.context.get_stream(stream).await {
            Ok(stream) => stream,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(away(&error)),
        };
        let listed = timeout(TIMEOUT, stream.consumers().try_collect::<Vec<_>>()).await;
        let listed = match listed {
            Ok(listed) => listed.map_err(|error| away(&error))?,
            Err(_) => {
                session.doubt();
                return Err(BusError::Away("it takes too long to list the consumers".to_owned()));
            }
        };
        let info = stream.cached_info();
        let (made, last) = (info.created.unix_timestamp_nanos(), info.state.last_sequence);
        let consumers = listed.into_iter().map(state_of).collect();
        Ok(Some(StreamState { made, last, consumers }))
    }

    async fn discard(&self, stream: &str, filter: &str, until: u64) -> Result<(), BusError> {
        let session = self.session().ok_or_else(|| BusError::Away(NOT_CONNECTED.to_owned()))?;
        let stream = session.context.get_stream(stream).await.map_err(|error| away(&error))?;
        // The server's purge excludes the sequence number it is given.
        let purge = stream.purge().filter(filter).sequence(until.saturating_add(1));
        purge.await.map(drop).map_err(|error| away(&error))
    }

    async fn redirect(&self, stream: &str, consumer: &Consumer) -> Result<(), BusError> {
        let session = self.session().ok_or_else(|| BusError::Away(NOT_CONNECTED.to_owned()))?;
        let stream = session.context.get_stream(stream).await.map_err(|error| away(&error))?;
        let info = stream.consumer_info(&consumer.name).await.map_err(|error| away(&error))?;
        // All other settings stay as the consumer's creator configured them.
        let config = consumer::Config {
            filter_subject: consumer.filter.clone(),
            filter_subjects: Vec::new(),
            ..info.config
        };
        let made = stream.create_consumer(config).await;
        made.map(drop).map_err(|error| BusError::Refused(chain(&error)))
    }
}

fn state_of(info: Info) -> ConsumerState {
    let mut filters = info.config.filter_subjects;
    filters.extend(Some(info.config.filter_subject).filter(|filter| !filter.is_empty()));
    ConsumerState {
        name: info.name,
        filters,
        pending: info.num_pending,
        unacknowledged: info.num_ack_pending as u64,
    }
}

fn is_missing(error: &context::GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn payload_max(session: &Session) -> usize {
    session.client.server_info().max_payload.saturating_sub(HEADERS_MAX)
}

/// Returns the stream, creating it if none of its name exists.
async fn stream(session: &Session, settings: &StreamSettings) -> Result<Stream, BusError> {
    let get = session.context.get_stream(&settings.name).await;
    let missing = match get {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    if !is_missing(&missing) {
        return Err(away(&missing));
    }
    match session.context.create_stream(stream_config(settings)).await {
        Ok(stream) => Ok(stream),
        // Another process created it concurrently, with different settings.
        Err(error) if is_taken(&error) => {
            session.context.get_stream(&settings.name).await.map_err(|error| away(&error))
        }
        Err(error) => Err(BusError::Refused(chain(&error))),
    }
}

fn is_taken(error: &context::CreateStreamError) -> bool {
    matches!(error.kind(), CreateStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NAME_EXIST)
}

fn stream_config(settings: &StreamSettings) -> Config {
    Config {
        name: settings.name.clone(),
        subjects: settings.subjects.clone(),
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        storage: StorageType::File,
        duplicate_window: settings.duplicate_window,
        max_age: settings.age_max,
        ..Config::default()
    }
}

fn pull_config(consumer: &Consumer) -> pull::Config {
    pull::Config {
        name: Some(consumer.name.clone()),
        durable_name: Some(consumer.name.clone()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: consumer.ack_wait,
        max_deliver: -1,
        filter_subject: consumer.filter.clone(),
        ..pull::Config::default()
    }
}

/// A published message whose ack is outstanding, with the size of its payload in bytes.
struct Sent {
    answer: PublishAckFuture,
    bytes: usize,
}

async fn send(session: &Session, message: StreamMessage) -> Result<Sent, PublishError> {
    let bytes = message.payload.len();
    if bytes > payload_max(session) {
        return Err(PublishError::TooLarge { bytes });
    }
    let publish = PublishMessage::build().payload(message.payload.into()).message_id(&message.id);
    let sent = timeout(TIMEOUT, session.context.send_publish(message.subject, publish)).await;
    match sent {
        Ok(Ok(answer)) => Ok(Sent { answer, bytes }),
        Ok(Err(error)) => Err(publish_error(&error, bytes)),
        Err(_) => {
            session.doubt();
            Err(PublishError::Away("it takes nothing more".to_owned()))
        }
    }
}

async fn answer(
    session: &Session,
    sent: Result<Sent, PublishError>,
) -> Result<PublishAck, PublishError> {
    let Sent { answer, bytes } = sent?;
    match answer.await {
        Ok(answer) if answer.duplicate => Ok(PublishAck::Known),
        Ok(_) => Ok(PublishAck::New),
        Err(error) => {
            if error.kind() == PublishErrorKind::TimedOut {
                session.doubt();
            }
            Err(publish_error(&error, bytes))
        }
    }
}

/// Classifies an error for the publisher. A server response with code 400 is about the message
/// itself. Other codes, such as those for exhausted resources, are not.
fn publish_error(error: &context::PublishError, bytes: usize) -> PublishError {
    use async_nats::jetstream::Error as ServerError;
    let response =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<ServerError>());
    match (error.kind(), response) {
        (PublishErrorKind::StreamNotFound, _) => PublishError::NoStream,
        (PublishErrorKind::MaxPayloadExceeded, _) => PublishError::TooLarge { bytes },
        (_, Some(response))
            if response.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM =>
        {
            PublishError::TooLarge { bytes }
        }
        (_, Some(response)) if response.code() == 400 => {
            PublishError::Refused(response.to_string())
        }
        _ => PublishError::Away(chain(error)),
    }
}

fn away(error: &(dyn std::error::Error + 'static)) -> BusError {
    BusError::Away(chain(error))
}

/// Formats an error with its chain of sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
