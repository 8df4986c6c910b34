//! A list of executions as it changes, as server-sent events.
//!
//! A stream reads its list again when something was committed, and now and then by itself for what
//! other processes committed; it sends what differs from what it sent before. However much happens,
//! it reads no more than twice a second.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures::stream::unfold;
use noetl_api::executions::ListChange;
use noetl_api::{Id, IdForm};
use noetl_model::ExecutionId;
use noetl_store::{ExecutionFilter, ExecutionRow};
use tokio::sync::watch;
use tokio::time::Instant;

use super::query::ListQuery;
use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::credential::Credential;
use crate::http::document::Failures;
use crate::http::extract::{Ids, Query};
use crate::routes::following::{OpenStream, message};
use crate::shape;

/// How often a stream looks for what other processes committed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long it rests between two looks at least.
const REST: Duration = Duration::from_millis(500);
/// How often something is sent, so that nobody in between takes the connection for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follow a list of executions
///
/// The list that the same parameters give at `/api/executions`, as it changes: first all of it, then
/// what is new or stands differently, and what is in it no more. It never ends by itself.
#[utoipa::path(
    get,
    path = "/api/executions/stream",
    operation_id = "executions_stream",
    tag = "executions",
    params(ListQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = ListChange),
        Failures,
    ),
)]
pub(crate) async fn watch(
    Scoped(app): Scoped,
    Ids(ids): Ids,
    Query(query): Query<ListQuery>,
    credential: Credential,
) -> Result<impl IntoResponse, ApiError> {
    let filter = query.filter()?;
    let open = OpenStream::new(&app, credential)?;
    let commits = app.control.watch.commits();
    let looked = Instant::now() - REST;
    let reader =
        Reader { app, ids, filter, sent: HashMap::new(), is_first: true, commits, looked, open };
    let messages = unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((Ok::<_, Infallible>(next), reader))
    });
    Ok(Sse::new(messages).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// One who follows a list.
struct Reader {
    app: App,
    ids: IdForm,
    filter: ExecutionFilter,
    /// What its reader knows.
    sent: HashMap<ExecutionId, ExecutionRow>,
    /// Whether nothing was sent yet: an empty list is news once.
    is_first: bool,
    commits: watch::Receiver<()>,
    looked: Instant,
    open: OpenStream,
}

impl Reader {
    /// The next message; none when the server stops or cannot read: whoever follows comes again.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if self.app.stopping.is_cancelled() || self.open.ended.is_cancelled() {
                return None;
            }
            self.commits.mark_unchanged();
            self.looked = Instant::now();
            let rows =
                self.app.control.executions.list(&self.app.tenant, &self.filter).await.ok()?;
            let change = self.change(rows);
            if !change.changed.is_empty() || !change.gone.is_empty() || self.is_first {
                self.is_first = false;
                return Some(message(&change));
            }
            self.wait().await;
        }
    }

    /// What differs from what was sent.
    fn change(&mut self, rows: Vec<ExecutionRow>) -> ListChange {
        let mut before = std::mem::take(&mut self.sent);
        let mut changed = Vec::new();
        for row in rows {
            if before.remove(&row.id).is_none_or(|known| known != row) {
                changed.push(shape::execution(&row, self.ids));
            }
            self.sent.insert(row.id, row);
        }
        let gone = before.into_keys().map(|id| Id::new(id.get(), self.ids)).collect();
        ListChange { changed, gone }
    }

    /// Waits until there may be something new, and for a rest.
    async fn wait(&mut self) {
        let moved = async {
            // A sender that is gone goes with the control plane, and the server stops then.
            let _ = self.commits.changed().await;
            tokio::time::sleep_until(self.looked + REST).await;
        };
        tokio::select! {
            () = moved => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = self.app.stopping.cancelled() => {}
            () = self.open.ended.cancelled() => {}
        }
    }
}
