//! Executions: list, detail, status, events, and answers.

pub(crate) mod query;
pub(crate) mod steer;
pub(crate) mod watch;

use axum::response::{IntoResponse, Response};
use noetl_api::Id;
use noetl_api::events::EventsReply;
use noetl_api::executions::{
    AnswerReply, AnswerRequest, CancellationCheck, ExecutionDetail, ExecutionView, StatusReply,
};
use noetl_model::{CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, is_deeper_than};
use noetl_store::ExecutionStatus;

use self::query::{EVENTS, EventsQuery, ListQuery, StretchQuery};
use crate::error::ApiError;
use crate::event_queries::{self, EVENTS_MAX, brief};
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{IdFormat, Json, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::shape;

/// Lists executions
///
/// Returns executions by start time, newest first. Filters by catalog entry, path, status, parent,
/// and other parameters.
#[utoipa::path(
    get,
    path = "/api/executions",
    operation_id = "executions_list",
    tag = "executions",
    params(ListQuery),
    responses((status = 200, body = Vec<ExecutionView>), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<ExecutionView>>, ApiError> {
    let filter = query.filter()?;
    let rows = app.control.journal.executions.list(&app.tenant, &filter).await?;
    Ok(Json(rows.iter().map(|row| shape::execution(row, ids)).collect()))
}

/// Reads an execution
///
/// Returns all events, oldest first. If the log has more than 100,000 events, `truncated` is `true`
/// and only the newest are returned. With `page`, returns one page, newest first. With
/// `since_event_id` or `event_type`, returns only the matching events.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Id, Path), StretchQuery),
    responses((status = 200, body = ExecutionDetail), ErrorResponses),
)]
pub(crate) async fn detail(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Query(query): Query<StretchQuery>,
) -> Result<Response, ApiError> {
    let (stretch, only) = (query.stretch()?, query.only()?);
    bound::check_read(&app, &caller, id).await?;
    match stretch {
        None => event_queries::whole(&app, id, only, ids).await,
        Some(stretch) => {
            let detail = event_queries::detail(&app, id, stretch, &only, ids).await?;
            Ok(Json(detail).into_response())
        }
    }
}

/// Returns the status of an execution
#[utoipa::path(
    get,
    path = "/api/executions/{id}/status",
    operation_id = "executions_status",
    tag = "executions",
    params(("id" = Id, Path)),
    responses((status = 200, body = StatusReply), ErrorResponses),
)]
pub(crate) async fn status(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
) -> Result<Json<StatusReply>, ApiError> {
    bound::check_read(&app, &caller, id).await?;
    event_queries::status(&app, id, ids).await.map(Json)
}

/// Reads a range of an execution's event log
///
/// Returns the events after `after`, oldest first. To read the next range, pass `next_after`. With
/// `brief`, large values are omitted, so that a long log can be read quickly; request a single
/// event to read it in full.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/events",
    tag = "executions",
    params(("id" = Id, Path), EventsQuery),
    responses((status = 200, body = EventsReply), ErrorResponses),
)]
pub(crate) async fn events(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Query(query): Query<EventsQuery>,
) -> Result<Json<EventsReply>, ApiError> {
    let (after, limit) = (query.after()?.unwrap_or(0), query.limit()?.unwrap_or(EVENTS));
    let is_brief = query.brief()?;
    let mut reply = event_queries::events(&app, id, after, limit.min(EVENTS_MAX), ids).await?;
    if is_brief {
        reply.events.iter_mut().for_each(brief::shorten);
    }
    Ok(Json(reply))
}

/// Answers a parked command
///
/// For approvals and external jobs. The token is in the `command.parked` event. An answer with a
/// different token is rejected.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/answers/{command}",
    tag = "executions",
    params(("id" = Id, Path), ("command" = Id, Path)),
    request_body = AnswerRequest,
    responses((status = 200, body = AnswerReply), ErrorResponses),
)]
pub(crate) async fn answer(
    Scoped(app): Scoped,
    caller: Caller,
    Path((id, command)): Path<(ExecutionId, CommandId)>,
    IdFormat(ids): IdFormat,
    Json(request): Json<AnswerRequest>,
) -> Result<Json<AnswerReply>, ApiError> {
    if is_deeper_than(&request.data, DEPTH_MAX) {
        let message = format!("data nests more than {DEPTH_MAX} levels deep");
        return Err(ApiError::invalid("too_deep", message));
    }
    let outcome = match request.error {
        None => Ok(request.data),
        Some(error) => Err(Failure::new(FailureKind::Unknown, error)),
    };
    let executions = app.control.journal.executions.with_actor(caller.identity());
    if executions.get(&app.tenant, id).await?.is_none() {
        return Err(ApiError::not_found("execution_not_found", "Execution not found"));
    }
    executions.answer(id, command, &request.token, outcome).await?;
    Ok(Json(AnswerReply {
        execution_id: Id::new(id.get(), ids),
        command_id: command.to_string(),
        status: "accepted".to_owned(),
    }))
}

/// Checks whether an execution was cancelled
///
/// Returns `false` for an unknown execution.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/cancellation-check",
    tag = "executions",
    params(("id" = Id, Path)),
    responses((status = 200, body = CancellationCheck), ErrorResponses),
)]
pub(crate) async fn cancellation_check(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
) -> Result<Json<CancellationCheck>, ApiError> {
    let row = app.control.journal.executions.get(&app.tenant, id).await?;
    let is_cancelled = row.is_some_and(|row| row.status == ExecutionStatus::Cancelled);
    Ok(Json(CancellationCheck { execution_id: Id::new(id.get(), ids), is_cancelled }))
}
