//! Logs as they grow, as server-sent events.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::IntoResponse;
use noetl_api::Id;
use noetl_api::events::EventView;
use noetl_model::{ExecutionId, Seq};
use noetl_store::ExecutionRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::following::{Follower, Reader, message, place};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::credential::Credential;
use crate::http::document::Failures;
use crate::http::extract::{Ids, Path, Query};
use crate::reads::{self, brief};
use crate::routes::executions::query::flag;

/// Events read, and held for a reader, at a time.
const PAGE: usize = 100;
/// When a reader that lost its connection comes again.
const COME_AGAIN: Duration = Duration::from_secs(2);

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// After this place in the log; the header `Last-Event-ID` wins.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// Whether to leave out what is large in `context`, `result` and `meta`: null stands for it.
    #[param(value_type = Option<bool>)]
    brief: Option<String>,
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
    credential: Credential,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let after = place(&headers, query.after.as_deref())?;
    let is_brief = flag("brief", query.brief.as_deref())?;
    let row = reads::row(&app, id).await?;
    let follower = Follower::new(app, id, ids, credential)?;
    Ok(EventReader { follower, row, after, is_brief }.messages())
}

/// One who follows a log.
struct EventReader {
    follower: Follower,
    row: ExecutionRow,
    after: u64,
    is_brief: bool,
}

impl Reader for EventReader {
    fn follower(&mut self) -> &mut Follower {
        &mut self.follower
    }

    async fn read(&mut self) -> Result<bool, ApiError> {
        let Self { follower, row, after, is_brief } = self;
        let executions = &follower.app.control.executions;
        let events = executions.events(row.id, Seq(*after), PAGE).await?;
        if let Some(last) = events.last() {
            *after = last.seq.0;
            let mut shown = reads::shown(&events, row, follower.ids);
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
