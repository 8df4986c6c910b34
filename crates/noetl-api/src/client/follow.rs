//! Reader of an event stream that reconnects after a lost connection.

use std::collections::VecDeque;
use std::time::Duration;

use noetl_model::Value;
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};

use super::messages::{Messages, SseMessage};
use super::{ApiCall, Client, ClientError, decode, refused};
use crate::stream::StreamEnd;

/// Delay before a reconnect if the stream didn't set one.
const WAIT: Duration = Duration::from_secs(2);
/// Maximum delay before a reconnect, even if the stream requests a longer one.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Maximum number of consecutive connection attempts. With the delay, several minutes: enough for a
/// control plane that moves to another machine, without waiting forever for one that is gone.
const TRIES_MAX: u32 = 150;

/// Item returned by [`EventFollower::next`].
#[derive(Debug)]
pub enum StreamItem {
    /// Next item: its ID in the stream, and its body.
    Item(u64, Value),
    /// The execution ended and all items were sent. The stream has no further items.
    End(StreamEnd),
    /// The connection was lost. The next call of [`EventFollower::next`] reconnects and continues after
    /// the last item.
    Lost(ClientError),
}

/// Reader of one event stream.
#[derive(Debug)]
pub struct EventFollower {
    client: Client,
    call: ApiCall<()>,
    after: u64,
    connection: Option<Response>,
    messages: Messages,
    ready: VecDeque<SseMessage>,
    /// Whether a connection was ever established. Until then, errors are returned instead of
    /// retried.
    was_there: bool,
    attempts: u32,
}

impl EventFollower {
    pub(super) fn new(client: Client, call: ApiCall<()>, after: u64) -> Self {
        Self {
            client,
            call,
            after,
            connection: None,
            messages: Messages::default(),
            ready: VecDeque::new(),
            was_there: false,
            attempts: 0,
        }
    }

    /// Returns the ID of the last returned item, or the initial value if there is none.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Waits for the next item and reconnects if necessary. Each item is returned exactly once,
    /// even across reconnects.
    ///
    /// Cancellation safe: dropping the future loses no item.
    ///
    /// # Errors
    ///
    /// Returns an error if the first connection fails, if the server responds with a permanent
    /// error, if reconnecting failed too often, or if the response is not a valid event stream.
    pub async fn next(&mut self) -> Result<StreamItem, ClientError> {
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
                // The stream closed without an `end` event, for example because the control plane
                // is shutting down.
                Ok(None) => self.connection = None,
                Err(error) => {
                    self.connection = None;
                    return Ok(StreamItem::Lost(ClientError::transport(error)));
                }
            }
        }
    }

    fn hear(&mut self, message: &SseMessage) -> Result<Option<StreamItem>, ClientError> {
        self.attempts = 0;
        if message.event == "end" {
            return decode(message.data.as_bytes()).map(|end| Some(StreamItem::End(end)));
        }
        let Some(place) = message.id.as_deref().and_then(|id| id.parse().ok()) else {
            return Ok(None);
        };
        if place <= self.after {
            return Ok(None);
        }
        let item = decode(message.data.as_bytes())?;
        self.after = place;
        Ok(Some(StreamItem::Item(place, item)))
    }

    /// Connects, after a delay if this is not the first attempt. Returns `Ok` without a connection
    /// if a retry may succeed; an error is final.
    async fn connect(&mut self) -> Result<(), ClientError> {
        if self.attempts > 0 {
            tokio::time::sleep(self.wait()).await;
        }
        self.attempts += 1;
        match self.open().await {
            Ok(connection) => {
                self.messages.begin_again();
                self.connection = Some(connection);
                self.was_there = true;
                Ok(())
            }
            Err(error) if self.was_there && error.is_passing() && self.attempts < TRIES_MAX => {
                Ok(())
            }
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

#[cfg(test)]
mod tests {
    use noetl_model::ExecutionId;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::calls;

    const STREAM: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    const END: &str = "event: end\ndata: {\"execution_id\": \"7\", \"status\": \"COMPLETED\", \"error\": null, \"events\": 3}\n\n";

    /// One who gives each caller the next of these answers, and tells what it was asked.
    async fn server(answers: Vec<String>) -> (Client, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (told, asked) = mpsc::channel(answers.len());
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a caller");
                let mut request = vec![0; 8192];
                let size = stream.read(&mut request).await.expect("a request");
                let request = String::from_utf8_lossy(&request[..size]).to_lowercase();
                stream.write_all(answer.as_bytes()).await.expect("an answer");
                stream.shutdown().await.expect("an end");
                told.send(request).await.expect("a test that listens");
            }
        });
        (Client::new(&format!("http://{address}")).expect("an address"), asked)
    }

    fn refusal(status: &str, body: &str) -> String {
        let size = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{body}")
    }

    async fn items(follow: &mut EventFollower) -> (Vec<u64>, Result<StreamEnd, ClientError>) {
        let mut places = Vec::new();
        loop {
            match follow.next().await {
                Ok(StreamItem::Item(place, _)) => places.push(place),
                Ok(StreamItem::End(end)) => return (places, Ok(end)),
                Ok(StreamItem::Lost(_)) => {}
                Err(error) => return (places, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn an_interrupted_stream_resumes_without_repeating_events() {
        let first = "retry: 1\nid: 1\ndata: {}\n\nid: 2\ndata: {}\n\nid: 3\ndata: {\"cut";
        let again = format!("id: 2\ndata: {{}}\n\nid: 3\ndata: {{}}\n\n{END}");
        let answers = vec![
            format!("{STREAM}{first}"),
            refusal("503 Service Unavailable", ""),
            refusal("502 Bad Gateway", "a proxy"),
            format!("{STREAM}{again}"),
        ];
        let (client, mut asked) = server(answers).await;
        let mut follow = client.follow(calls::stream(ExecutionId::new(7)), 0);
        let (places, end) = items(&mut follow).await;
        assert_eq!((places, follow.after()), (vec![1, 2, 3], 3));
        assert_eq!(end.expect("an end").status, "COMPLETED");
        let first = asked.recv().await.expect("a request");
        assert!(first.contains("get /api/executions/7/stream"), "{first}");
        assert!(first.contains("last-event-id: 0\r\n"), "{first}");
        let again = asked.recv().await.expect("a request");
        assert!(again.contains("last-event-id: 2\r\n"), "{again}");
    }

    #[tokio::test]
    async fn a_first_or_permanent_failure_is_reported_at_once() {
        let (client, _asked) = server(vec![refusal("503 Service Unavailable", "")]).await;
        let (places, end) = items(&mut client.follow(calls::stream(ExecutionId::new(7)), 0)).await;
        assert_eq!((places, end.expect_err("a refusal").status()), (vec![], Some(503)));

        let cut = format!("{STREAM}id: 1\ndata: {{}}\n\n");
        let (client, _asked) = server(vec![cut, refusal("404 Not Found", "gone")]).await;
        let (places, end) = items(&mut client.follow(calls::stream(ExecutionId::new(7)), 0)).await;
        assert_eq!((places, end.expect_err("a refusal").status()), (vec![1], Some(404)));

        let page = refusal("200 OK", "hello");
        let (client, _asked) = server(vec![page]).await;
        let (_, end) = items(&mut client.follow(calls::stream(ExecutionId::new(7)), 0)).await;
        assert!(matches!(end, Err(ClientError::Shape(_))), "{end:?}");
    }
}
