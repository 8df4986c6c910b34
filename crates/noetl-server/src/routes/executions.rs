//! Executions: lists, detail, status, cancelling.

use noetl_api::Id;
use noetl_api::events::EventsReply;
use noetl_api::executions::{
    AnswerReply, AnswerRequest, CancelReply, CancelRequest, CancellationCheck, ExecutionDetail,
    ExecutionView, FinalizeRequest, StatusReply,
};
use noetl_model::{CommandId, DEPTH_MAX, ExecutionId, Failure, FailureKind, is_deeper_than};
use noetl_store::{ExecutionFilter, ExecutionStatus};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::{ApiError, not_cancelled};
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Ids, Json, OptionalJson, Path, Query};
use crate::reads::{self, EVENTS_MAX, Stretch};
use crate::shape;

/// Executions in a list when nothing else is said, and at most.
const LIST: (u64, u64) = (50, 100);
/// Events in a stretch of a log when nothing else is said.
const EVENTS: u64 = 500;

/// Which executions to list. A parameter without a value counts as left out.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of this catalog entry.
    #[param(value_type = Option<Id>)]
    catalog_id: Option<String>,
    /// With this in their path, in any case.
    #[param(value_type = Option<String>)]
    path: Option<String>,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    #[param(value_type = Option<String>)]
    status: Option<String>,
    /// At most so many.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// After so many.
    #[param(value_type = Option<u64>)]
    offset: Option<String>,
}

/// Which part of a log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StretchQuery {
    /// Events after this number in the log.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
    /// Events after this number in the log, oldest first.
    #[param(value_type = Option<u64>)]
    after_seq: Option<String>,
    /// At most so many.
    #[param(value_type = Option<u64>)]
    limit: Option<String>,
    /// This page, from 1, newest events first.
    #[param(value_type = Option<u64>)]
    page: Option<String>,
    /// Events on a page.
    #[param(value_type = Option<u64>)]
    page_size: Option<String>,
}

/// List executions
///
/// Newest start first, filtered by catalog entry, part of the path, or status.
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
    let filter = filter(&query)?;
    let rows = app.control.executions.list(&app.tenant, &filter).await?;
    Ok(Json(rows.iter().map(|row| shape::execution(row, ids)).collect()))
}

/// Read an execution
///
/// With the newest 2000 events, oldest first; with `page`, one page of them, newest first.
#[utoipa::path(
    get,
    path = "/api/executions/{id}",
    tag = "executions",
    params(("id" = Id, Path), StretchQuery),
    responses((status = 200, body = ExecutionDetail), Failures),
)]
pub(crate) async fn detail(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Query(query): Query<StretchQuery>,
) -> Result<Json<ExecutionDetail>, ApiError> {
    reads::detail(&app, id, stretch(&query)?, ids).await.map(Json)
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
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
) -> Result<Json<StatusReply>, ApiError> {
    reads::status(&app, id, ids).await.map(Json)
}

/// Read a stretch of an execution's log
///
/// The events after `after`, oldest first. Asking again with `next_after` goes on from there.
#[utoipa::path(
    get,
    path = "/api/executions/{id}/events",
    tag = "executions",
    params(("id" = Id, Path), StretchQuery),
    responses((status = 200, body = EventsReply), Failures),
)]
pub(crate) async fn events(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Query(query): Query<StretchQuery>,
) -> Result<Json<EventsReply>, ApiError> {
    let after = count("after", query.after.as_deref())?.unwrap_or(0);
    let limit = count("limit", query.limit.as_deref())?.unwrap_or(EVENTS);
    reads::events(&app, id, after, limit.min(EVENTS_MAX), ids).await.map(Json)
}

/// Cancel an execution
///
/// Running steps are told to stop; their late results change nothing.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/cancel",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<CancelRequest>,
    responses((status = 200, body = CancelReply), Failures),
)]
pub(crate) async fn cancel(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    OptionalJson(request): OptionalJson<CancelRequest>,
) -> Result<Json<CancelReply>, ApiError> {
    let cancelled = app.control.executions.cancel(&app.tenant, id, request.reason).await;
    cancelled.map_err(|failure| not_cancelled(id, failure))?;
    Ok(Json(CancelReply {
        execution_id: Id::new(id.get(), ids),
        status: "cancelled".to_owned(),
        message: "Execution cancellation requested".to_owned(),
    }))
}

/// End an execution by hand
///
/// For one that an operator knows will never end by itself. What still runs is stopped.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/finalize",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = FinalizeRequest,
    responses((status = 200, body = CancelReply), Failures),
)]
pub(crate) async fn finalize(
    Scoped(app): Scoped,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    Json(request): Json<FinalizeRequest>,
) -> Result<Json<CancelReply>, ApiError> {
    let error = match request.status.to_ascii_uppercase().as_str() {
        "COMPLETED" => None,
        "FAILED" => Some(request.error.unwrap_or_else(|| "ended by an operator".to_owned())),
        other => {
            let message = format!("status must be COMPLETED or FAILED, not {other}");
            return Err(ApiError::invalid("invalid_status", message));
        }
    };
    app.control.executions.finalize(&app.tenant, id, error).await?;
    Ok(Json(CancelReply {
        execution_id: Id::new(id.get(), ids),
        status: request.status.to_ascii_uppercase(),
        message: "Execution finalized".to_owned(),
    }))
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
    let executions = &app.control.executions;
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

fn filter(query: &ListQuery) -> Result<ExecutionFilter, ApiError> {
    let catalog = given(query.catalog_id.as_deref()).map(str::parse).transpose();
    let limit = count("limit", query.limit.as_deref())?.unwrap_or(LIST.0).min(LIST.1);
    let offset = count("offset", query.offset.as_deref())?.unwrap_or(0);
    Ok(ExecutionFilter {
        status: given(query.status.as_deref()).map(status_named).transpose()?,
        path: given(query.path.as_deref()).map(str::to_owned),
        catalog: catalog.map_err(|error| ApiError::query(format!("catalog_id: {error}")))?,
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    })
}

fn status_named(text: &str) -> Result<ExecutionStatus, ApiError> {
    ExecutionStatus::from_text(&text.to_ascii_uppercase()).ok_or_else(|| {
        let message = "status must be RUNNING, COMPLETED, FAILED or CANCELLED";
        ApiError::query(message)
    })
}

fn stretch(query: &StretchQuery) -> Result<Stretch, ApiError> {
    let size = count("page_size", query.page_size.as_deref())?;
    let page = count("page", query.page.as_deref())?;
    let after = count("after_seq", query.after_seq.as_deref())?;
    let limited = size.unwrap_or(EVENTS).clamp(1, EVENTS_MAX);
    Ok(match (after, page, size) {
        (Some(after), _, _) => {
            Stretch::After { after, size: size.unwrap_or(EVENTS_MAX).clamp(1, EVENTS_MAX) }
        }
        (None, None, None) => Stretch::Newest,
        (None, page, _) => Stretch::Page { page: page.unwrap_or(1).max(1), size: limited },
    })
}

/// A number that cannot be negative. Anything else is the caller's mistake, named by parameter.
fn count(name: &str, text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let number = given(text).map(str::parse).transpose();
    number.map_err(|_| {
        let message = format!("{name} must be a whole number of at least 0");
        ApiError::query(message)
    })
}

fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(after_seq: &str, page: &str, page_size: &str) -> StretchQuery {
        StretchQuery {
            after: None,
            after_seq: Some(after_seq.to_owned()),
            limit: None,
            page: Some(page.to_owned()),
            page_size: Some(page_size.to_owned()),
        }
    }

    #[test]
    fn a_stretch_is_the_newest_events_unless_another_is_asked_for() {
        let read = |after, page, size| stretch(&query(after, page, size)).ok();
        assert_eq!(read("", "", ""), Some(Stretch::Newest));
        assert_eq!(read("", "2", "10"), Some(Stretch::Page { page: 2, size: 10 }));
        assert_eq!(read("", "0", "0"), Some(Stretch::Page { page: 1, size: 1 }));
        assert_eq!(read("7", "2", "99999"), Some(Stretch::After { after: 7, size: 2000 }));
        assert_eq!(read("-1", "", ""), None);
        assert_eq!(read("", "99999999999999999999999", ""), None);
    }
}
