//! Stream of an execution's event log, as server-sent events.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::IntoResponse;
use noetl_api::Id;
use noetl_api::events::EventView;
use noetl_model::{ExecutionId, Seq};
use noetl_store::ExecutionRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::sse::{PageReader, SseClient, message, place};
use crate::error::ApiError;
use crate::event_queries::{self, brief};
use crate::http::caller::Scoped;
use crate::http::credential::RequestCredential;
use crate::http::extract::{IdFormat, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::executions::query::flag;

/// Events per read of a stream.
const PAGE: usize = 100;
/// Time after which a client should reconnect, for the `retry` field.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// Query parameters of an event stream.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// Sequence number to start after. The `Last-Event-ID` header takes precedence. Default: 0.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// Whether to replace large values in `context`, `result`, and `meta` with null. Default:
    /// `false`.
    #[param(value_type = Option<bool>)]
    brief: Option<String>,
}

/// Follows an execution
///
/// Streams events as they are recorded, with the sequence number as `id`. A client that reconnects
/// with `Last-Event-ID` misses no event. When the execution has ended and all events are sent, an
/// event `end` reports the outcome.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/stream",
    tag = "executions",
    params(("id" = Id, Path), StreamQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = EventView),
        ErrorResponses,
    ),
)]
pub(crate) async fn stream(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Query(query): Query<StreamQuery>,
    credential: RequestCredential,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let after = place(&headers, query.after.as_deref())?;
    let is_brief = flag("brief", query.brief.as_deref())?;
    let row = event_queries::row(&app, id).await?;
    let follower = SseClient::new(app, id, ids, credential)?;
    Ok(EventReader { follower, row, after, is_brief }.messages())
}

/// Stream of an execution's event log.
struct EventReader {
    follower: SseClient,
    row: ExecutionRow,
    after: u64,
    is_brief: bool,
}

impl PageReader for EventReader {
    fn follower(&mut self) -> &mut SseClient {
        &mut self.follower
    }

    async fn read(&mut self) -> Result<bool, ApiError> {
        let Self { follower, row, after, is_brief } = self;
        let executions = &follower.app.control.journal.executions;
        let events = executions.events(row.id, Seq(*after), PAGE).await?;
        if let Some(last) = events.last() {
            *after = last.seq.0;
            let mut shown = event_queries::shown(&events, row, follower.ids);
            if *is_brief {
                shown.iter_mut().for_each(brief::shorten);
            }
            let sent = |view: &EventView| message(view).id(view.seq.to_string()).retry(COME_AGAIN);
            follower.ready.extend(shown.iter().map(sent));
            return Ok(true);
        }
        let Some(found) = executions.get(&follower.app.tenant, row.id).await? else {
            follower.is_over = true;
            return Ok(true);
        };
        *row = found;
        if !row.status.is_final() || row.version.0 > *after {
            return Ok(row.version.0 > *after);
        }
        follower.end(row);
        Ok(true)
    }
}
