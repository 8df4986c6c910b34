//! A stream that is read on when its connection is lost.

use std::collections::VecDeque;
use std::time::Duration;

use noetl_model::Value;
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};

use super::messages::{Message, Messages};
use super::{Call, Client, ClientError, decode, refused};
use crate::stream::StreamEnd;

/// How long to wait before coming again when the stream does not say.
const WAIT: Duration = Duration::from_secs(2);
/// The longest wait a stream can ask for.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often in a row to come again. With the wait, some minutes: a control plane that is moved to
/// another machine is back by then, and one that is gone for good must not be waited for.
const TRIES_MAX: u32 = 150;

/// What is heard from a stream.
#[derive(Debug)]
pub enum Heard {
    /// The next item: its place, and what it is.
    Item(u64, Value),
    /// The execution is over and everything was sent. There is nothing after it.
    End(StreamEnd),
    /// The connection was lost; asked again, the stream is read on from where it was.
    Lost(ClientError),
}

/// Reads one stream.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    call: Call<()>,
    after: u64,
    connection: Option<Response>,
    messages: Messages,
    ready: VecDeque<Message>,
    /// Whether it was ever connected: the first time, what is wrong is said at once.
    was_there: bool,
    tries: u32,
}

impl Follow {
    pub(super) fn new(client: Client, call: Call<()>, after: u64) -> Self {
        Self {
            client,
            call,
            after,
            connection: None,
            messages: Messages::default(),
            ready: VecDeque::new(),
            was_there: false,
            tries: 0,
        }
    }

    /// The place of the last item.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// What comes next. No item is given twice and none is left out, whatever happened to the
    /// connection in between. It may be dropped while it waits, and called again.
    pub async fn next(&mut self) -> Result<Heard, ClientError> {
        loop {
            while let Some(message) = self.ready.pop_front() {
                if let Some(heard) = self.hear(&message)? {
                    return Ok(heard);
                }
            }
            let Some(connection) = &mut self.connection else {
                self.connect().await?;
                continue;
            };
            match connection.chunk().await {
                Ok(Some(bytes)) => {
                    let whole = self.messages.push(&bytes);
                    let whole = whole.map_err(|error| ClientError::Shape(error.into()))?;
                    self.ready.extend(whole);
                }
                // It ended without a last word, as when the control plane stops.
                Ok(None) => self.connection = None,
                Err(error) => {
                    self.connection = None;
                    return Ok(Heard::Lost(ClientError::transport(error)));
                }
            }
        }
    }

    fn hear(&mut self, message: &Message) -> Result<Option<Heard>, ClientError> {
        self.tries = 0;
        if message.event == "end" {
            return decode(message.data.as_bytes()).map(|end| Some(Heard::End(end)));
        }
        let Some(place) = message.id.as_deref().and_then(|id| id.parse().ok()) else {
            return Ok(None);
        };
        if place <= self.after {
            return Ok(None);
        }
        let item = decode(message.data.as_bytes())?;
        self.after = place;
        Ok(Some(Heard::Item(place, item)))
    }

    /// Connects, or waits to do so again. An error is final.
    async fn connect(&mut self) -> Result<(), ClientError> {
        if self.tries > 0 {
            tokio::time::sleep(self.wait()).await;
        }
        self.tries += 1;
        match self.open().await {
            Ok(connection) => {
                self.messages.begin_again();
                self.connection = Some(connection);
                self.was_there = true;
                Ok(())
            }
            Err(error) if self.was_there && error.is_passing() && self.tries < TRIES_MAX => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn wait(&self) -> Duration {
        self.messages.retry_ms.map_or(WAIT, Duration::from_millis).min(WAIT_MAX)
    }

    async fn open(&self) -> Result<Response, ClientError> {
        let request = self.call.request(&self.client.streams, &self.client.base)?;
        let request = request.header(ACCEPT, "text/event-stream");
        let request = request.header("last-event-id", self.after.to_string());
        let response = request.send().await.map_err(ClientError::transport)?;
        let status = response.status();
        if status.is_success() {
            let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
            let otherwise = || ClientError::Shape("it is no stream of events".into());
            return if is_stream { Ok(response) } else { Err(otherwise()) };
        }
        let body = response.bytes().await.map_err(ClientError::transport)?;
        Err(refused(status, &body))
    }
}
