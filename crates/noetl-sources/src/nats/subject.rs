//! Source for a core NATS subject, which delivers only while subscribed.
//!
//! The server stores no messages, so acks have no effect there. Nacked messages wait in memory and
//! are lost if the process dies.

use std::time::Duration;

use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use futures::StreamExt as _;
use noetl_model::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{TIMEOUT, attributes, away, check_connected, given_id, headers_of};
use crate::redelivery::RedeliveryQueue;
use crate::source::{Delivery, Message, Source, SourceError};

/// Nominal ack deadline. This source enforces none.
const ACK_WAIT: Duration = Duration::from_secs(3600);

pub(super) struct SubjectSource {
    client: Client,
    subscriber: Mutex<Subscriber>,
    returned: RedeliveryQueue,
}

impl SubjectSource {
    /// Subscribes to the subject as a member of a queue group, so that each message is delivered to
    /// one member.
    pub(super) async fn open(
        client: Client,
        subject: &str,
        group: String,
    ) -> Result<Self, SourceError> {
        let listening = client.queue_subscribe(subject.to_owned(), group).await;
        let subscriber = listening.map_err(|error| {
            SourceError::Settings(format!("subject '{subject}' cannot be listened to: {error}"))
        })?;
        // The server has processed the subscription when this returns.
        let flushed = tokio::time::timeout(TIMEOUT, client.flush()).await;
        flushed
            .map_err(|_| SourceError::Away("the NATS server does not answer".to_owned()))?
            .map_err(|error| away("the NATS server does not answer", &error))?;
        Ok(Self {
            client,
            subscriber: Mutex::new(subscriber),
            returned: RedeliveryQueue::default(),
        })
    }

    fn message(&self, message: async_nats::Message) -> Message {
        let headers = headers_of(message.headers.as_ref());
        let sender_id = given_id(message.headers.as_ref());
        let metadata =
            Map::from_iter([("subject".to_owned(), Value::from(message.subject.as_str()))]);
        Message {
            // A new inbox name is unique.
            id: sender_id.unwrap_or_else(|| self.client.new_inbox()),
            attributes: attributes(&headers),
            body: message.payload,
            headers,
            metadata,
            ack_id: None,
        }
    }
}

#[async_trait]
impl Source for SubjectSource {
    async fn fetch(&self, most: usize, wait: Duration) -> Result<Vec<Delivery>, SourceError> {
        let mut messages = self.returned.due(Instant::now(), most);
        let mut subscriber = self.subscriber.lock().await;
        if messages.is_empty() {
            match tokio::time::timeout(wait, subscriber.next()).await {
                Ok(Some(message)) => messages.push(self.message(message)),
                Ok(None) => return Err(SourceError::Away("the subscription ended".to_owned())),
                Err(_) => check_connected(&self.client)?,
            }
        }
        while messages.len() < most {
            let ready = futures::FutureExt::now_or_never(subscriber.next());
            let Some(Some(message)) = ready else { break };
            messages.push(self.message(message));
        }
        Ok(messages.into_iter().map(|message| self.returned.delivery(message)).collect())
    }

    fn keeps(&self) -> bool {
        false
    }

    fn ack_wait(&self) -> Duration {
        ACK_WAIT
    }

    async fn backlog(&self) -> Result<Option<u64>, SourceError> {
        Ok(None)
    }

    async fn close(&self) {
        let _ = self.subscriber.lock().await.unsubscribe().await;
        let _ = tokio::time::timeout(TIMEOUT, self.client.drain()).await;
    }
}
