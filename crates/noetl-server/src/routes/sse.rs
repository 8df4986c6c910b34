//! Server-sent event streams over logs that grow.
//!
//! A stream reads a small page only once the client has received the previous one, so a slow client
//! uses no more memory than a fast one. Commits of this process wake it; it also polls for writes
//! of other processes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use noetl_api::stream::StreamEnd;
use noetl_api::{Id, IdForm};
use noetl_journal::ExecutionWatcher;
use noetl_model::ExecutionId;
use noetl_store::ExecutionRow;
use serde::Serialize;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::capacity::StreamPermit;
use crate::error::ApiError;
use crate::http::credential::RequestCredential;
use crate::routes::executions::query::count;

/// Interval of reads for writes of other processes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Interval of keep-alive comments, so that proxies don't close the connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// State that all streams over an execution share.
pub(super) struct SseClient {
    pub(super) app: App,
    pub(super) ids: IdForm,
    pub(super) ready: VecDeque<Message>,
    /// Whether the stream ends after the messages in `ready`.
    pub(super) is_over: bool,
    follow: ExecutionWatcher,
    open: OpenStream,
}

/// An authorized stream. Dropping it releases its permit.
pub(in crate::routes) struct OpenStream {
    /// Cancelled when the client's credential is no longer valid.
    pub(in crate::routes) ended: CancellationToken,
    _watching: DropGuard,
    _permit: StreamPermit,
}

impl OpenStream {
    /// Opens a stream of the app's tenant. It ends when the credential is no longer valid.
    pub(in crate::routes) fn new(
        app: &App,
        credential: RequestCredential,
    ) -> Result<Self, ApiError> {
        let permit = app.streams.open(&app.options, &app.tenant)?;
        let (ended, watching) = credential.watch(app);
        Ok(Self { ended, _watching: watching, _permit: permit })
    }
}

/// Reads the next messages of a stream.
pub(super) trait PageReader: Send + Sized + 'static {
    fn follower(&mut self) -> &mut SseClient;

    /// Reads the next page. Returns `true` if the stream can continue without waiting.
    fn read(&mut self) -> impl Future<Output = Result<bool, ApiError>> + Send;

    /// Returns the response that streams all messages until the end.
    fn messages(self) -> Sse<impl Stream<Item = Result<Message, Infallible>>> {
        let messages = unfold(self, |mut reader| async move {
            let next = next(&mut reader).await?;
            Some((Ok(next), reader))
        });
        Sse::new(messages).keep_alive(KeepAlive::new().interval(HEARTBEAT))
    }
}

/// Returns the next message, or `None` at the end of the stream.
async fn next<R: PageReader>(reader: &mut R) -> Option<Message> {
    loop {
        let follower = reader.follower();
        if follower.open.ended.is_cancelled() {
            return None;
        }
        if let Some(next) = follower.ready.pop_front() {
            return Some(next);
        }
        if follower.is_over || follower.app.stopping.is_cancelled() {
            return None;
        }
        match reader.read().await {
            Ok(true) => {}
            Ok(false) => reader.follower().wait().await,
            // The client reconnects and continues after the last message it received.
            Err(_) => return None,
        }
    }
}

impl SseClient {
    /// Creates a stream that follows an execution.
    pub(super) fn new(
        app: App,
        id: ExecutionId,
        ids: IdForm,
        credential: RequestCredential,
    ) -> Result<Self, ApiError> {
        let open = OpenStream::new(&app, credential)?;
        let follow = app.control.journal.watch.follow(id);
        let ready = VecDeque::new();
        Ok(Self { app, ids, ready, is_over: false, follow, open })
    }

    /// Queues the final message with the execution's outcome, and ends the stream.
    pub(super) fn end(&mut self, row: &ExecutionRow) {
        let end = StreamEnd {
            execution_id: Id::new(row.id.get(), self.ids),
            status: row.status.as_str().to_owned(),
            error: row.error.clone(),
            events: row.version.0,
        };
        self.ready.push_back(message(&end).event("end"));
        self.is_over = true;
    }

    /// Waits until new messages may be available.
    async fn wait(&mut self) {
        tokio::select! {
            () = self.follow.moved() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = self.app.stopping.cancelled() => {}
            () = self.open.ended.cancelled() => {}
        }
    }
}

/// Returns the sequence number to continue after: `Last-Event-ID` of a reconnecting client, or else
/// the query parameter.
pub(super) fn place(headers: &HeaderMap, after: Option<&str>) -> Result<u64, ApiError> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    match last {
        Some(last) => Ok(count("Last-Event-ID", Some(last))?.unwrap_or(0)),
        None => Ok(count("after", after)?.unwrap_or(0)),
    }
}

/// Creates a message with a JSON body.
pub(super) fn message<T: Serialize>(body: &T) -> Message {
    // Serialization cannot fail: all map keys are text.
    Message::default().json_data(body).unwrap_or_default()
}
