//! Reading as one of the durable readers that somebody else made.
//!
//! Requests are written here rather than through the client's own readers: those ask for a reader's
//! settings first, on every connection, and nothing of that is needed to be given its messages.

use std::time::Duration;

use async_nats::{StatusCode, Subscriber};
use async_trait::async_trait;
use futures::StreamExt;
use futures::future::select_all;
use noetl_bus::{CommandReader, Given, ReadError};
use tokio::time::timeout;

use crate::connection::{Session, TIMEOUT};
use crate::stream::{NOT_CONNECTED, NatsStream};

/// How long after its wait a request may still be answered by a server that is there.
const LATE: Duration = Duration::from_secs(1);

/// What is said of a message that is dealt with.
const DONE: &str = "+ACK";

/// What is said of one that somebody else is to have.
const AGAIN: &str = "-NAK";

/// What a server says to whoever waits when the reader is deleted.
const DELETED: &str = "Consumer Deleted";

#[async_trait]
impl CommandReader for NatsStream {
    async fn next(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Given>, ReadError> {
        let session = self.session().ok_or_else(|| away(NOT_CONNECTED))?;
        if readers.is_empty() {
            return Err(ReadError::NoReader);
        }
        let reading = async {
            let given = there(&session, stream, readers, max).await?;
            if !given.is_empty() {
                return Ok(given);
            }
            let waiting = readers.iter().map(|reader| {
                Box::pin(pull(&session, stream, reader, Asked { count: 1, wait: Some(wait) }))
            });
            // The others are told that nobody listens any more, and keep what they have.
            let (first, _, _) = select_all(waiting).await;
            let mut given = first?;
            if given.is_empty() || max <= 1 {
                return Ok(given);
            }
            // What came along is dealt with in one go; what cannot be had now comes later.
            if let Ok(more) = there(&session, stream, readers, max - given.len()).await {
                given.extend(more);
            }
            Ok(given)
        };
        tokio::select! {
            given = reading => given,
            () = self.connection.lost() => Err(away("the connection is lost")),
        }
    }

    async fn done(&self, receipts: &[String]) {
        self.answer(receipts, DONE).await;
    }

    async fn again(&self, receipts: &[String]) {
        self.answer(receipts, AGAIN).await;
    }
}

impl NatsStream {
    /// Says the same of several messages. Without a connection they are given again later.
    async fn answer(&self, receipts: &[String], word: &'static str) {
        let Some(session) = self.session() else { return };
        for receipt in receipts {
            if session.client.publish(receipt.clone(), word.into()).await.is_err() {
                return;
            }
        }
    }
}

/// What is asked of a reader.
#[derive(Clone, Copy)]
struct Asked {
    count: usize,
    /// How long the first may take; `None` to be given what is there.
    wait: Option<Duration>,
}

impl Asked {
    fn text(self) -> String {
        let count = self.count;
        match self.wait {
            Some(wait) => format!(r#"{{"batch":{count},"expires":{}}}"#, wait.as_nanos().max(1)),
            None => format!(r#"{{"batch":{count},"no_wait":true}}"#),
        }
    }
}

/// What is there for these readers.
async fn there(
    session: &Session,
    stream: &str,
    readers: &[String],
    max: usize,
) -> Result<Vec<Given>, ReadError> {
    let mut given = Vec::new();
    for reader in readers {
        if given.len() < max {
            let asked = Asked { count: max - given.len(), wait: None };
            match pull(session, stream, reader, asked).await {
                Ok(more) => given.extend(more),
                Err(error) if given.is_empty() => return Err(error),
                // What was given has to be dealt with first.
                Err(_) => return Ok(given),
            }
        }
    }
    Ok(given)
}

/// Asks one reader.
async fn pull(
    session: &Session,
    stream: &str,
    reader: &str,
    asked: Asked,
) -> Result<Vec<Given>, ReadError> {
    let client = &session.client;
    let inbox = client.new_inbox();
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{reader}");
    let sending = async {
        let answers = client.subscribe(inbox.clone()).await.map_err(|error| away(&error))?;
        let sent = client.publish_with_reply(subject, inbox, asked.text().into()).await;
        sent.map_err(|error| away(&error))?;
        Ok(answers)
    };
    let mut answers = match timeout(TIMEOUT, sending).await {
        Ok(answers) => answers?,
        Err(_) => return Err(silent(session)),
    };
    let longest = asked.wait.map_or(TIMEOUT, |wait| wait + LATE);
    let mut given = Vec::new();
    while given.len() < asked.count {
        match timeout(longest, answer(&mut answers)).await {
            Ok(Answer::Message(message)) => given.push(message),
            Ok(Answer::NoMore) => break,
            // What was given has to be dealt with first.
            Ok(Answer::Error(_)) if !given.is_empty() => break,
            Ok(Answer::Error(error)) => return Err(error),
            Err(_) if !given.is_empty() => break,
            Err(_) => return Err(silent(session)),
        }
    }
    Ok(given)
}

enum Answer {
    Message(Given),
    NoMore,
    Error(ReadError),
}

async fn answer(answers: &mut Subscriber) -> Answer {
    let Some(message) = answers.next().await else {
        return Answer::Error(away("the connection is lost"));
    };
    match message.status.unwrap_or(StatusCode::OK) {
        StatusCode::OK => {}
        StatusCode::TIMEOUT | StatusCode::NOT_FOUND => return Answer::NoMore,
        StatusCode::NO_RESPONDERS => return Answer::Error(ReadError::NoReader),
        status => {
            let said = message.description.unwrap_or_default();
            return Answer::Error(match said.contains(DELETED) {
                true => ReadError::NoReader,
                false => away(format!("{status} {said}")),
            });
        }
    }
    let receipt = message.reply.map(|reply| reply.to_string()).unwrap_or_default();
    let (subject, payload) = (message.subject.to_string(), message.payload.to_vec());
    Answer::Message(Given { subject, payload, receipt })
}

/// A server that does not answer within its time is given up for another connection.
fn silent(session: &Session) -> ReadError {
    session.doubt();
    away("it takes too long to answer")
}

fn away(why: impl ToString) -> ReadError {
    ReadError::Away(why.to_string())
}
