//! Logs as they grow, as server-sent events.
//!
//! A stream reads the log in small pages when its reader has taken what it was sent, so a slow one
//! costs no more memory than a fast one. It is woken by commits of this process, and looks by itself
//! now and then for what others committed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;
use noetl_api::events::EventView;
use noetl_api::stream::StreamEnd;
use noetl_api::{Id, IdForm};
use noetl_control::Follow;
use noetl_model::{ExecutionId, Seq};
use noetl_store::ExecutionRow;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

use crate::app::{App, STREAMS_MAX};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Ids, Path, Query};
use crate::reads;
use crate::routes::executions::query::count;

/// Events read, and held for a reader, at a time.
const PAGE: usize = 100;
/// How often a stream looks for what other processes committed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often something is sent, so that nobody in between takes the connection for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// When a reader that lost its connection comes again.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// After this place in the log; the header `Last-Event-ID` wins.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
}

/// Follow an execution
///
/// Its events as they are recorded, each with its place in the log as `id`. A reader that lost its
/// connection says where it was with `Last-Event-ID` and misses nothing. When the execution is over
/// and everything was sent, an event `end` says how it ended.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/stream",
    tag = "executions",
    params(("id" = Id, Path), StreamQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = EventView),
        Failures,
    ),
)]
pub(crate) async fn stream(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let after = place(&headers, query.after.as_deref())?;
    let row = reads::row(&app, id).await?;
    let permit = permit(&app)?;
    let follow = app.control.watch.follow(id);
    let reader = Reader {
        app,
        row,
        ids,
        after,
        ready: VecDeque::new(),
        is_over: false,
        follow,
        _permit: permit,
    };
    Ok(Sse::new(reader.messages()).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// The right to one more stream.
pub(super) fn permit(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    app.streams.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{STREAMS_MAX} streams are open already; come again");
        ApiError::unavailable("too_many_streams", message)
    })
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

/// One who follows a log.
struct Reader {
    app: App,
    row: ExecutionRow,
    ids: IdForm,
    after: u64,
    ready: VecDeque<Message>,
    is_over: bool,
    follow: Follow,
    /// Given back when the stream ends, however it does.
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    fn messages(self) -> impl Stream<Item = Result<Message, Infallible>> {
        unfold(self, |mut reader| async move {
            let next = reader.next().await?;
            Some((Ok(next), reader))
        })
    }

    /// The next message; none when the stream is over.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            if self.is_over || self.app.stopping.is_cancelled() {
                return None;
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => self.wait().await,
                // Whoever follows comes again, and goes on where it was.
                Err(_) => return None,
            }
        }
    }

    /// Reads on. Whether there is something to send, or the stream is over.
    async fn read(&mut self) -> Result<bool, ApiError> {
        let id = self.row.id;
        let executions = &self.app.control.executions;
        let events = executions.events(id, Seq(self.after), PAGE).await?;
        if let Some(last) = events.last() {
            self.after = last.seq.0;
            let shown = reads::shown(&events, &self.row, self.ids);
            let sent = |view: &EventView| message(view).id(view.seq.to_string()).retry(COME_AGAIN);
            self.ready.extend(shown.iter().map(sent));
            return Ok(true);
        }
        let Some(row) = executions.get(&self.app.tenant, id).await? else {
            self.is_over = true;
            return Ok(true);
        };
        self.row = row;
        if !self.row.status.is_final() || self.row.version.0 > self.after {
            return Ok(self.row.version.0 > self.after);
        }
        self.is_over = true;
        let end = StreamEnd {
            execution_id: Id::new(id.get(), self.ids),
            status: self.row.status.as_str().to_owned(),
            error: self.row.error.clone(),
            events: self.row.version.0,
        };
        self.ready.push_back(message(&end).event("end"));
        Ok(true)
    }

    /// Waits until there may be more.
    async fn wait(&mut self) {
        tokio::select! {
            () = self.follow.moved() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = self.app.stopping.cancelled() => {}
        }
    }
}
