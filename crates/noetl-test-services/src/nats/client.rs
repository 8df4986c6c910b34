//! Reads streams and creates streams and consumers on a [`TestNats`].

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{self, Context};
use futures::StreamExt;

use super::TestNats;

const BATCH: usize = 500;

/// A message stored in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMessage {
    /// Subject the message was published on.
    pub subject: String,
    /// Message ID, from the header `Nats-Msg-Id`.
    pub id: String,
    pub payload: Vec<u8>,
}

impl TestNats {
    /// Returns every message of a stream, oldest first, or none if there is no such stream.
    pub async fn messages(&self, stream: &str) -> Vec<StreamMessage> {
        let Ok(stream) = self.context().await.get_stream(stream).await else { return Vec::new() };
        let count = stream.get_info().await.expect("the stream's state").state.messages;
        let config = pull::Config { ack_policy: AckPolicy::None, ..pull::Config::default() };
        let consumer = stream.create_consumer(config).await.expect("a consumer");
        let mut messages = Vec::new();
        while (messages.len() as u64) < count {
            let batch = consumer.fetch().max_messages(BATCH).messages().await;
            let mut batch = batch.expect("messages");
            while let Some(message) = batch.next().await {
                let message = message.expect("a message");
                let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id"));
                messages.push(StreamMessage {
                    subject: message.subject.to_string(),
                    id: id.expect("a message ID").to_string(),
                    payload: message.payload.to_vec(),
                });
            }
        }
        messages
    }

    /// Creates a stream of the messages published on a subject.
    pub async fn create_stream(&self, name: &str, subject: &str) {
        let (name, subjects) = (name.to_owned(), vec![subject.to_owned()]);
        let config = jetstream::stream::Config { name, subjects, ..Default::default() };
        self.context().await.create_stream(config).await.expect("a stream");
    }

    /// Creates a durable consumer that redelivers messages not acked within `ack_wait`.
    pub async fn create_consumer(&self, stream: &str, name: &str, ack_wait: Duration) {
        let stream = self.context().await.get_stream(stream).await.expect("a stream");
        let config = pull::Config {
            durable_name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.expect("a consumer");
    }

    /// Returns the number of messages a consumer has not acked, delivered or not.
    pub async fn unacked(&self, stream: &str, consumer: &str) -> u64 {
        let stream = self.context().await.get_stream(stream).await.expect("a stream");
        let info = stream.consumer_info(consumer).await.expect("a consumer");
        info.num_pending + info.num_ack_pending as u64
    }

    /// Deletes a stream with its messages.
    pub async fn delete_stream(&self, stream: &str) {
        self.context().await.delete_stream(stream).await.expect("a stream to delete");
    }

    /// Opens a connection and returns its JetStream context.
    pub async fn context(&self) -> Context {
        jetstream::new(async_nats::connect(self.url()).await.expect("a connection"))
    }
}
