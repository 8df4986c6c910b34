//! Cancellation, finalization, rerun, fork, and retry of executions.

use std::time::Duration;

use noetl_api::execute::ExecuteReply;
use noetl_api::executions::{
    CancelReply, CancelRequest, CleanupReply, CleanupRequest, FinalizeReply, FinalizeRequest,
    ForkReply, ForkRequest, ForkedFrom, RerunRequest, RetryRequest,
};
use noetl_api::{Id, Version};
use noetl_engine::Rejection;
use noetl_journal::{CLEANED_MAX, ForkVersion, Forked, SubmitError};
use noetl_model::{ExecutionId, Seq};

use crate::app::App;
use crate::error::{ApiError, not_cancelled};
use crate::event_queries;
use crate::http::acted;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{IdFormat, Json, OptionalJson, Path};
use crate::http::openapi::ErrorResponses;
use crate::http::trace_context::RequestTrace;

/// Cancels an execution
///
/// Workers stop its running steps, and late completions have no effect. Child executions that it
/// waits for are cancelled too. With `cascade`, all descendants are cancelled and listed in the
/// response.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/cancel",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<CancelRequest>,
    responses((status = 200, body = CancelReply), ErrorResponses),
)]
pub(crate) async fn cancel(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    OptionalJson(request): OptionalJson<CancelRequest>,
) -> Result<Json<CancelReply>, ApiError> {
    let has_cascade = request.cascade.is_some();
    let (own, cancelled) = cancelled(&app, &caller, id, request).await?;
    own.map_err(|failure| not_cancelled(id, failure, has_cascade))?;
    Ok(Json(CancelReply {
        execution_id: Id::new(id.get(), ids),
        status: "cancelled".to_owned(),
        message: "Execution cancellation requested".to_owned(),
        cancelled_executions: cancelled,
    }))
}

/// Stops an execution
///
/// Behaves like cancel, except that an execution that already ended is not an error.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/stop",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<CancelRequest>,
    responses((status = 200, body = CancelReply), ErrorResponses),
)]
pub(crate) async fn stop(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    OptionalJson(request): OptionalJson<CancelRequest>,
) -> Result<Json<CancelReply>, ApiError> {
    let (own, cancelled) = cancelled(&app, &caller, id, request).await?;
    let (status, message) = match own {
        Ok(()) => ("cancelled".to_owned(), "Execution stopped".to_owned()),
        Err(SubmitError::Refused(Rejection::AlreadyFinished(_))) => {
            let status = event_queries::row(&app, id).await?.status.as_str();
            (status.to_ascii_lowercase(), format!("Execution was {status} already"))
        }
        Err(failure) => return Err(not_cancelled(id, failure, false)),
    };
    let execution_id = Id::new(id.get(), ids);
    Ok(Json(CancelReply { execution_id, status, message, cancelled_executions: cancelled }))
}

/// Cancels an execution and, with `cascade`, its descendants. Returns the outcome for the execution
/// itself and the IDs of all cancelled executions. Cascades also from an execution that already
/// ended, because descendants may still run.
async fn cancelled(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
    request: CancelRequest,
) -> Result<(Result<(), SubmitError>, Vec<Id>), ApiError> {
    let executions = app.control.journal.executions.with_actor(caller.identity());
    let CancelRequest { reason, cascade } = request;
    let own = executions.cancel(&app.tenant, id, reason.clone()).await;
    let is_over = matches!(own, Err(SubmitError::Refused(Rejection::AlreadyFinished(_))));
    let mut cancelled: Vec<Id> = own.iter().map(|()| Id::text(id.get())).collect();
    if cascade == Some(true) && (own.is_ok() || is_over) {
        let below = executions.cancel_descendants(&app.tenant, id, reason).await?;
        cancelled.extend(below.into_iter().map(|id| Id::text(id.get())));
    }
    Ok((own, cancelled))
}

/// Finalizes an execution
///
/// For an execution that cannot end by itself. Steps that still run are stopped.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/finalize",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = FinalizeRequest,
    responses((status = 200, body = FinalizeReply), ErrorResponses),
)]
pub(crate) async fn finalize(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    IdFormat(ids): IdFormat,
    Json(request): Json<FinalizeRequest>,
) -> Result<Json<FinalizeReply>, ApiError> {
    let error = match request.status.to_ascii_uppercase().as_str() {
        "COMPLETED" => None,
        "FAILED" => Some(request.error.unwrap_or_else(|| "ended by an operator".to_owned())),
        other => {
            let message = format!("status must be COMPLETED or FAILED, not {other}");
            return Err(ApiError::invalid("invalid_status", message));
        }
    };
    app.control
        .journal
        .executions
        .with_actor(caller.identity())
        .finalize(&app.tenant, id, error)
        .await?;
    Ok(Json(FinalizeReply {
        execution_id: Id::new(id.get(), ids),
        status: request.status.to_ascii_uppercase(),
        message: "Execution finalized".to_owned(),
    }))
}

/// Reruns an execution
///
/// Starts the same version of the same playbook from its first step. `workload` is merged into the
/// original workload.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/rerun",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<RerunRequest>,
    responses((status = 200, body = ExecuteReply), ErrorResponses),
)]
pub(crate) async fn rerun(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: RequestTrace,
    OptionalJson(request): OptionalJson<RerunRequest>,
) -> Result<Json<ExecuteReply>, ApiError> {
    let trace = traced.start(None);
    let started = app
        .control
        .journal
        .executions
        .with_actor(caller.identity())
        .rerun(&app.tenant, id, request.workload, trace)
        .await?;
    Ok(Json(ExecuteReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
    }))
}

/// Forks an execution at a past event
///
/// Starts a new execution from the decisions up to `at`, with new IDs. Commands in flight at that
/// event are issued again. If `at` is in the middle of a decision, the fork starts before that
/// decision; the response says from which event. The original execution doesn't change. With
/// `version`, the fork continues with another version of the playbook. That version must be
/// compatible with everything in flight, which is rendered again.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/fork",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<ForkRequest>,
    responses((status = 200, body = ForkReply), ErrorResponses),
)]
pub(crate) async fn fork(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: RequestTrace,
    OptionalJson(request): OptionalJson<ForkRequest>,
) -> Result<Json<ForkReply>, ApiError> {
    let (at, trace) = (request.at.map(Id::get), traced.start(None));
    let version = version(request.version);
    let request = noetl_journal::ForkRequest { at, workload: request.workload, trace, version };
    Ok(Json(forked(
        app.control
            .journal
            .executions
            .with_actor(caller.identity())
            .fork(&app.tenant, id, request)
            .await?,
    )))
}

/// Retries a failed or cancelled execution
///
/// Starts a new execution from the decisions before the failure, so that completed steps don't run
/// again. With `from`, restarts at that step instead. A cancelled execution continues at the point
/// of cancellation. With `version`, continues with another version of the playbook, as in a fork.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/retry",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<RetryRequest>,
    responses((status = 200, body = ForkReply), ErrorResponses),
)]
pub(crate) async fn retry(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: RequestTrace,
    OptionalJson(request): OptionalJson<RetryRequest>,
) -> Result<Json<ForkReply>, ApiError> {
    let RetryRequest { from, workload, version } = request;
    let (trace, version) = (traced.start(None), self::version(version));
    let request = noetl_journal::RetryRequest { from, workload, trace, version };
    Ok(Json(forked(
        app.control
            .journal
            .executions
            .with_actor(caller.identity())
            .retry(&app.tenant, id, request)
            .await?,
    )))
}

fn version(asked: Option<Version>) -> ForkVersion {
    match asked {
        None => ForkVersion::Same,
        Some(Version::Latest) => ForkVersion::Newest,
        Some(Version::Number(number)) => ForkVersion::Number(number),
    }
}

fn forked(Forked { started, from }: Forked) -> ForkReply {
    let shares = from.seq > Seq::START;
    ForkReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
        forked_from: ForkedFrom {
            execution_id: Id::text(from.execution.get()),
            event_id: shares.then(|| Id::text(from.event.get())),
            seq: from.seq.0,
        },
    }
}

/// Cancels old executions
///
/// Cancels running executions that started more than the given number of minutes ago, at most 500
/// per request.
#[utoipa::path(
    post,
    path = "/api/executions/cleanup",
    operation_id = "executions_cleanup",
    tag = "executions",
    request_body = Option<CleanupRequest>,
    responses((status = 200, body = CleanupReply), ErrorResponses),
)]
pub(crate) async fn cleanup(
    Scoped(app): Scoped,
    caller: Caller,
    IdFormat(ids): IdFormat,
    OptionalJson(request): OptionalJson<CleanupRequest>,
) -> Result<Json<CleanupReply>, ApiError> {
    let CleanupRequest { older_than_minutes: minutes, dry_run } = request;
    let age = Duration::from_secs(u64::from(minutes) * 60);
    if !dry_run {
        let what = format!("older than {minutes} minutes");
        acted::record(&app, &caller, "execution.cleanup", &what, None).await?;
    }
    let cancelled = app
        .control
        .journal
        .executions
        .with_actor(caller.identity())
        .cancel_older(&app.tenant, age, dry_run)
        .await?;
    let did = if dry_run { "would be cancelled" } else { "were cancelled" };
    let more = if cancelled.len() >= CLEANED_MAX { "; there may be more" } else { "" };
    let count = cancelled.len();
    Ok(Json(CleanupReply {
        cancelled_count: count,
        message: format!("{count} executions older than {minutes} minutes {did}{more}"),
        execution_ids: cancelled.into_iter().map(|id| Id::new(id.get(), ids)).collect(),
    }))
}
