//! Readers of what grows, as server-sent events.
//!
//! A reader reads in small pages when whoever follows has taken what was sent, so a slow one costs no
//! more memory than a fast one. It is woken by this process, and looks by itself now and then for
//! what others wrote.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use noetl_api::stream::StreamEnd;
use noetl_api::{Id, IdForm};
use noetl_control::Follow;
use noetl_model::ExecutionId;
use noetl_store::ExecutionRow;
use serde::Serialize;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::error::ApiError;
use crate::http::credential::Credential;
use crate::http::streams::StreamPermit;
use crate::routes::executions::query::count;

/// How often a reader looks for what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often something is sent, so that nobody in between takes the connection for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// One who follows an execution: what every reader has.
pub(super) struct Follower {
    pub(super) app: App,
    pub(super) ids: IdForm,
    /// What is to be sent next.
    pub(super) ready: VecDeque<Message>,
    /// Whether nothing more is to be read.
    pub(super) is_over: bool,
    follow: Follow,
    open: OpenStream,
}

/// A stream that was let through. Dropping it gives back the right to it.
pub(in crate::routes) struct OpenStream {
    /// Cancelled when the reader's credential counts no more.
    pub(in crate::routes) ended: CancellationToken,
    _watching: DropGuard,
    _permit: StreamPermit,
}

impl OpenStream {
    /// Opens one more stream of the app's tenant, for as long as the credential counts.
    pub(in crate::routes) fn new(app: &App, credential: Credential) -> Result<Self, ApiError> {
        let permit = app.streams.open(app)?;
        let (ended, watching) = credential.watch(app);
        Ok(Self { ended, _watching: watching, _permit: permit })
    }
}

/// How one who follows reads on.
pub(super) trait Reader: Send + Sized + 'static {
    /// What every reader has.
    fn follower(&mut self) -> &mut Follower;

    /// Reads on. Whether there is something to do without waiting.
    fn read(&mut self) -> impl Future<Output = Result<bool, ApiError>> + Send;

    /// Everything that is read, until the end.
    fn messages(self) -> Sse<impl Stream<Item = Result<Message, Infallible>>> {
        let messages = unfold(self, |mut reader| async move {
            let next = next(&mut reader).await?;
            Some((Ok(next), reader))
        });
        Sse::new(messages).keep_alive(KeepAlive::new().interval(HEARTBEAT))
    }
}

/// The next message; none when the stream is over.
async fn next<R: Reader>(reader: &mut R) -> Option<Message> {
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
            // Whoever follows comes again, and goes on where it was.
            Err(_) => return None,
        }
    }
}

impl Follower {
    /// One who follows this execution from now on.
    pub(super) fn new(
        app: App,
        id: ExecutionId,
        ids: IdForm,
        credential: Credential,
    ) -> Result<Self, ApiError> {
        let open = OpenStream::new(&app, credential)?;
        let follow = app.control.watch.follow(id);
        let ready = VecDeque::new();
        Ok(Self { app, ids, ready, is_over: false, follow, open })
    }

    /// Says how the execution ended, and that this is all.
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

    /// Waits until there may be more.
    async fn wait(&mut self) {
        tokio::select! {
            () = self.follow.moved() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = self.app.stopping.cancelled() => {}
            () = self.open.ended.cancelled() => {}
        }
    }
}

/// The place a reader was at, by the header of one that comes again or by the query.
pub(super) fn place(headers: &HeaderMap, after: Option<&str>) -> Result<u64, ApiError> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    match last {
        Some(last) => Ok(count("Last-Event-ID", Some(last))?.unwrap_or(0)),
        None => Ok(count("after", after)?.unwrap_or(0)),
    }
}

/// One message with a JSON body.
pub(super) fn message<T: Serialize>(body: &T) -> Message {
    // What is sent has text keys only, so it always has a JSON form.
    Message::default().json_data(body).unwrap_or_default()
}
