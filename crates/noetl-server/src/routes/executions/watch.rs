//! Stream of changes to a list of executions, as server-sent events.
//!
//! A stream reads its list again after a commit of this process, and periodically for commits of
//! other processes. It sends the difference from the previous list. It reads at most twice per
//! second.

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
use crate::http::credential::RequestCredential;
use crate::http::extract::{IdFormat, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::sse::{OpenStream, message};
use crate::shape;

/// Interval of reads for commits of other processes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Minimum time between two reads.
const REST: Duration = Duration::from_millis(500);
/// Interval of keep-alive comments, so that proxies don't close the connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follows a list of executions
///
/// Streams the list that `/api/executions` returns for the same parameters: first the whole list,
/// then executions that are new or changed, and the IDs of those no longer in the list. The server
/// doesn't end the stream unless it stops, fails to read, or rejects the credential.
#[utoipa::path(
    get,
    path = "/api/executions/stream",
    operation_id = "executions_stream",
    tag = "executions",
    params(ListQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = ListChange),
        ErrorResponses,
    ),
)]
pub(crate) async fn watch(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
    Query(query): Query<ListQuery>,
    credential: RequestCredential,
) -> Result<impl IntoResponse, ApiError> {
    let filter = query.filter()?;
    let open = OpenStream::new(&app, credential)?;
    let commits = app.control.journal.watch.commits();
    let looked = Instant::now() - REST;
    let reader = ListWatcher {
        app,
        ids,
        filter,
        sent: HashMap::new(),
        is_first: true,
        commits,
        looked,
        open,
    };
    let messages = unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((Ok::<_, Infallible>(next), reader))
    });
    Ok(Sse::new(messages).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

struct ListWatcher {
    app: App,
    ids: IdForm,
    filter: ExecutionFilter,
    /// Rows the client has received.
    sent: HashMap<ExecutionId, ExecutionRow>,
    /// Whether the first message, which may be an empty list, is still to be sent.
    is_first: bool,
    commits: watch::Receiver<()>,
    looked: Instant,
    open: OpenStream,
}

impl ListWatcher {
    /// Returns the next message, or `None` if the server stops, the read fails, or the credential
    /// is rejected. The client then reconnects.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if self.app.stopping.is_cancelled() || self.open.ended.is_cancelled() {
                return None;
            }
            self.commits.mark_unchanged();
            self.looked = Instant::now();
            let rows = self
                .app
                .control
                .journal
                .executions
                .list(&self.app.tenant, &self.filter)
                .await
                .ok()?;
            let change = self.change(rows);
            if !change.changed.is_empty() || !change.gone.is_empty() || self.is_first {
                self.is_first = false;
                return Some(message(&change));
            }
            self.wait().await;
        }
    }

    /// Computes the difference from the previous list.
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

    /// Waits until the list may have changed, at least [`REST`] after the last read.
    async fn wait(&mut self) {
        let moved = async {
            // The sender is dropped only with the control plane, when the server stops.
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
