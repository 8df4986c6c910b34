//! Executions: lists, detail, status, answers.

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
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Ids, Json, Path, Query};
use crate::reads::{self, EVENTS_MAX, brief};
use crate::shape;

/// List executions
///
/// Newest start first, filtered by catalog entry, part of the path, status, or who started them.
#[utoipa::path(
    get,
    path = "/api/executions",
    operation_id = "executions_list",
    tag = "executions",
    params(ListQuery),
    responses((status = 200, body = Vec<ExecutionView>), Failures),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Ids(ids): Ids,
    Query(query): Query<ListQuery>,
) -> Result<Json<Vec<ExecutionView>>, ApiError> {
    let filter = query.filter()?;
    let rows = app.control.executions.list(&app.tenant, &filter).await?;
    Ok(Json(rows.iter().map(|row| shape::execution(row, ids)).collect()))
}

/// Read an execution
///
/// With every event, oldest first; `truncated` says that the log has more than 100000, of which the
/// newest are shown. With `page`, one page of them, newest first. With `since_event_id` and
/// `event_type`, of those events only.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Id, Path), StretchQuery),
    responses((status = 200, body = ExecutionDetail), Failures),
)]
pub(crate) async fn detail(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Query(query): Query<StretchQuery>,
) -> Result<Response, ApiError> {
    let (stretch, only) = (query.stretch()?, query.only()?);
    bound::check_read(&app, &caller, id).await?;
    match stretch {
        None => reads::whole(&app, id, only, ids).await,
        Some(stretch) => {
            let detail = reads::detail(&app, id, stretch, &only, ids).await?;
            Ok(Json(detail).into_response())
        }
    }
}

/// How an execution stands
#[utoipa::path(
    get,
    path = "/api/executions/{id}/status",
    operation_id = "executions_status",
    tag = "executions",
    params(("id" = Id, Path)),
    responses((status = 200, body = StatusReply), Failures),
)]
pub(crate) async fn status(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
) -> Result<Json<StatusReply>, ApiError> {
    bound::check_read(&app, &caller, id).await?;
    reads::status(&app, id, ids).await.map(Json)
}

/// Read a stretch of an execution's log
///
/// The events after `after`, oldest first. Asking again with `next_after` goes on from there. With
/// `brief` large values are left out, so that a long log is soon read; one event is read in full by
/// asking for it alone.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/events",
    tag = "executions",
    params(("id" = Id, Path), EventsQuery),
    responses((status = 200, body = EventsReply), Failures),
)]
pub(crate) async fn events(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Query(query): Query<EventsQuery>,
) -> Result<Json<EventsReply>, ApiError> {
    let (after, limit) = (query.after()?.unwrap_or(0), query.limit()?.unwrap_or(EVENTS));
    let is_brief = query.brief()?;
    let mut reply = reads::events(&app, id, after, limit.min(EVENTS_MAX), ids).await?;
    if is_brief {
        reply.events.iter_mut().for_each(brief::shorten);
    }
    Ok(Json(reply))
}

/// Answer a step that waits
///
/// For approvals and jobs that ran elsewhere. The token is in the `command.parked` event; an answer
/// with another one changes nothing.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/answers/{command}",
    tag = "executions",
    params(("id" = Id, Path), ("command" = Id, Path)),
    request_body = AnswerRequest,
    responses((status = 200, body = AnswerReply), Failures),
)]
pub(crate) async fn answer(
    Scoped(app): Scoped,
    caller: Caller,
    Path((id, command)): Path<(ExecutionId, CommandId)>,
    Ids(ids): Ids,
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
    let executions = app.control.executions.by(caller.identity());
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

/// Whether an execution was cancelled
///
/// One that is not known was not.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/cancellation-check",
    tag = "executions",
    params(("id" = Id, Path)),
    responses((status = 200, body = CancellationCheck), Failures),
)]
pub(crate) async fn cancellation_check(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
) -> Result<Json<CancellationCheck>, ApiError> {
    let row = app.control.executions.get(&app.tenant, id).await?;
    let is_cancelled = row.is_some_and(|row| row.status == ExecutionStatus::Cancelled);
    Ok(Json(CancellationCheck { execution_id: Id::new(id.get(), ids), is_cancelled }))
}
