//! Pulls messages through durable consumers created by other processes.
//!
//! Sends the JetStream pull requests directly instead of through the client's consumer types, which
//! first fetch the consumer's configuration on every connection. Pulling doesn't need it.

use std::time::Duration;

use async_nats::{StatusCode, Subscriber};
use async_trait::async_trait;
use futures::StreamExt;
use futures::future::select_all;
use noetl_bus::{CommandConsumer, Delivery, ReadError};
use tokio::time::timeout;

use crate::connection::{Session, TIMEOUT};
use crate::stream::{NOT_CONNECTED, NatsStream};

/// Time after a pull request's own wait within which a healthy server still responds.
const LATE: Duration = Duration::from_secs(1);

/// JetStream payload that acks a message.
const DONE: &str = "+ACK";

/// JetStream payload that nacks a message.
const AGAIN: &str = "-NAK";

/// Status text of a pull request whose consumer is deleted while it waits.
const DELETED: &str = "Consumer Deleted";

#[async_trait]
impl CommandConsumer for NatsStream {
    async fn next(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, ReadError> {
        let session = self.session().ok_or_else(|| away(NOT_CONNECTED))?;
        if readers.is_empty() {
            return Err(ReadError::NoReader);
        }
        let reading = async {
            let deliveries = there(&session, stream, readers, max).await?;
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            let waiting = readers.iter().map(|reader| {
                Box::pin(pull(&session, stream, reader, PullRequest { count: 1, wait: Some(wait) }))
            });
            // Dropping the other requests unsubscribes their inboxes. The server then keeps their
            // messages for later pulls.
            let (first, _, _) = select_all(waiting).await;
            let mut deliveries = first?;
            if deliveries.is_empty() || max <= 1 {
                return Ok(deliveries);
            }
            // Adds the messages that arrived at the same time. A failure here only delays them
            // until the next pull.
            if let Ok(more) = there(&session, stream, readers, max - deliveries.len()).await {
                deliveries.extend(more);
            }
            Ok(deliveries)
        };
        tokio::select! {
            deliveries = reading => deliveries,
            () = self.connection.lost() => Err(away("the connection is lost")),
        }
    }

    async fn done(&self, receipts: &[String]) {
        self.answer(receipts, DONE).await;
    }

    async fn nack(&self, receipts: &[String]) {
        self.answer(receipts, AGAIN).await;
    }
}

impl NatsStream {
    /// Publishes the same acknowledgment for several deliveries. Without a connection, the server
    /// redelivers the messages later.
    async fn answer(&self, receipts: &[String], word: &'static str) {
        let Some(session) = self.session() else { return };
        for receipt in receipts {
            if session.client.publish(receipt.clone(), word.into()).await.is_err() {
                return;
            }
        }
    }
}

/// A pull request to one consumer.
#[derive(Clone, Copy)]
struct PullRequest {
    count: usize,
    /// Time to wait for the first message. `None` returns only available messages.
    wait: Option<Duration>,
}

impl PullRequest {
    fn text(self) -> String {
        let count = self.count;
        match self.wait {
            Some(wait) => format!(r#"{{"batch":{count},"expires":{}}}"#, wait.as_nanos().max(1)),
            None => format!(r#"{{"batch":{count},"no_wait":true}}"#),
        }
    }
}

/// Pulls the messages available now, at most `max` over all consumers.
async fn there(
    session: &Session,
    stream: &str,
    readers: &[String],
    max: usize,
) -> Result<Vec<Delivery>, ReadError> {
    let mut deliveries = Vec::new();
    for reader in readers {
        if deliveries.len() < max {
            let request = PullRequest { count: max - deliveries.len(), wait: None };
            match pull(session, stream, reader, request).await {
                Ok(more) => deliveries.extend(more),
                Err(error) if deliveries.is_empty() => return Err(error),
                // Messages that were delivered must be processed first.
                Err(_) => return Ok(deliveries),
            }
        }
    }
    Ok(deliveries)
}

/// Sends one pull request and collects its messages.
async fn pull(
    session: &Session,
    stream: &str,
    reader: &str,
    request: PullRequest,
) -> Result<Vec<Delivery>, ReadError> {
    let client = &session.client;
    let inbox = client.new_inbox();
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{reader}");
    let sending = async {
        let answers = client.subscribe(inbox.clone()).await.map_err(|error| away(&error))?;
        let sent = client.publish_with_reply(subject, inbox, request.text().into()).await;
        sent.map_err(|error| away(&error))?;
        Ok(answers)
    };
    let mut answers = match timeout(TIMEOUT, sending).await {
        Ok(answers) => answers?,
        Err(_) => return Err(silent(session)),
    };
    let longest = request.wait.map_or(TIMEOUT, |wait| wait + LATE);
    let mut deliveries = Vec::new();
    while deliveries.len() < request.count {
        match timeout(longest, answer(&mut answers)).await {
            Ok(ConsumerReply::Message(message)) => deliveries.push(message),
            Ok(ConsumerReply::NoMore) => break,
            // Messages that were delivered must be processed first.
            Ok(ConsumerReply::Error(_)) if !deliveries.is_empty() => break,
            Ok(ConsumerReply::Error(error)) => return Err(error),
            Err(_) if !deliveries.is_empty() => break,
            Err(_) => return Err(silent(session)),
        }
    }
    Ok(deliveries)
}

enum ConsumerReply {
    Message(Delivery),
    NoMore,
    Error(ReadError),
}

async fn answer(answers: &mut Subscriber) -> ConsumerReply {
    let Some(message) = answers.next().await else {
        return ConsumerReply::Error(away("the connection is lost"));
    };
    match message.status.unwrap_or(StatusCode::OK) {
        StatusCode::OK => {}
        StatusCode::TIMEOUT | StatusCode::NOT_FOUND => return ConsumerReply::NoMore,
        StatusCode::NO_RESPONDERS => return ConsumerReply::Error(ReadError::NoReader),
        status => {
            let description = message.description.unwrap_or_default();
            return ConsumerReply::Error(match description.contains(DELETED) {
                true => ReadError::NoReader,
                false => away(format!("{status} {description}")),
            });
        }
    }
    let receipt = message.reply.map(|reply| reply.to_string()).unwrap_or_default();
    let (subject, payload) = (message.subject.to_string(), message.payload.to_vec());
    ConsumerReply::Message(Delivery { subject, payload, receipt })
}

/// Drops the connection of a server that did not respond in time, and returns the error.
fn silent(session: &Session) -> ReadError {
    session.doubt();
    away("it takes too long to answer")
}

fn away(why: impl ToString) -> ReadError {
    ReadError::Away(why.to_string())
}
