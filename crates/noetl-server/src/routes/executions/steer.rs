//! Stopping executions, running them again, and going on from where they were.

use std::time::Duration;

use noetl_api::execute::ExecuteReply;
use noetl_api::executions::{
    CancelReply, CancelRequest, CleanupReply, CleanupRequest, FinalizeReply, FinalizeRequest,
    ForkReply, ForkRequest, ForkedFrom, RerunRequest, RetryRequest,
};
use noetl_api::{Id, Version};
use noetl_control::{CLEANED_MAX, ForkVersion, Forked, SubmitError};
use noetl_engine::Refusal;
use noetl_model::{ExecutionId, Seq};

use crate::app::App;
use crate::error::{ApiError, not_cancelled};
use crate::http::acted;
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Ids, Json, OptionalJson, Path};
use crate::http::traced::Traced;
use crate::reads;

/// Cancel an execution
///
/// Running steps are told to stop; their late results change nothing. What it started and waits for
/// is stopped with it; with `cascade` everything below it is, and is named.
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
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
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

/// Stop an execution
///
/// As a cancel that is content with one that is over already.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/stop",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<CancelRequest>,
    responses((status = 200, body = CancelReply), Failures),
)]
pub(crate) async fn stop(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
    OptionalJson(request): OptionalJson<CancelRequest>,
) -> Result<Json<CancelReply>, ApiError> {
    let (own, cancelled) = cancelled(&app, &caller, id, request).await?;
    let (status, message) = match own {
        Ok(()) => ("cancelled".to_owned(), "Execution stopped".to_owned()),
        Err(SubmitError::Refused(Refusal::AlreadyFinished(_))) => {
            let status = reads::row(&app, id).await?.status.as_str();
            (status.to_ascii_lowercase(), format!("Execution was {status} already"))
        }
        Err(failure) => return Err(not_cancelled(id, failure, false)),
    };
    let execution_id = Id::new(id.get(), ids);
    Ok(Json(CancelReply { execution_id, status, message, cancelled_executions: cancelled }))
}

/// Stops an execution and, if asked to, what is below it; answers what became of itself, and what was
/// stopped. One that is over may have left something running below it.
async fn cancelled(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
    request: CancelRequest,
) -> Result<(Result<(), SubmitError>, Vec<Id>), ApiError> {
    let executions = app.control.executions.by(caller.identity());
    let CancelRequest { reason, cascade } = request;
    let own = executions.cancel(&app.tenant, id, reason.clone()).await;
    let is_over = matches!(own, Err(SubmitError::Refused(Refusal::AlreadyFinished(_))));
    let mut cancelled: Vec<Id> = own.iter().map(|()| Id::text(id.get())).collect();
    if cascade == Some(true) && (own.is_ok() || is_over) {
        let below = executions.cancel_below(&app.tenant, id, reason).await?;
        cancelled.extend(below.into_iter().map(|id| Id::text(id.get())));
    }
    Ok((own, cancelled))
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
    responses((status = 200, body = FinalizeReply), Failures),
)]
pub(crate) async fn finalize(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Ids(ids): Ids,
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
    app.control.executions.by(caller.identity()).finalize(&app.tenant, id, error).await?;
    Ok(Json(FinalizeReply {
        execution_id: Id::new(id.get(), ids),
        status: request.status.to_ascii_uppercase(),
        message: "Execution finalized".to_owned(),
    }))
}

/// Run an execution again
///
/// The same version of the same playbook from its first step on, with the workload it had and
/// `workload` laid over it.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/rerun",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<RerunRequest>,
    responses((status = 200, body = ExecuteReply), Failures),
)]
pub(crate) async fn rerun(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: Traced,
    OptionalJson(request): OptionalJson<RerunRequest>,
) -> Result<Json<ExecuteReply>, ApiError> {
    let trace = traced.start(None);
    let started = app
        .control
        .executions
        .by(caller.identity())
        .rerun(&app.tenant, id, request.workload, trace)
        .await?;
    Ok(Json(ExecuteReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
    }))
}

/// Go on from a point in the past, as a new execution
///
/// The new one begins with what was decided up to `at`, under ids of its own; what was under way
/// there is handed out anew. When `at` is in the middle of a decision, it goes on from before that;
/// the reply tells from where. The other is left as it is. With `version` it goes on with another
/// version of the playbook, which must have a place for everything that is under way there; that is
/// rendered anew.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/fork",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<ForkRequest>,
    responses((status = 200, body = ForkReply), Failures),
)]
pub(crate) async fn fork(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: Traced,
    OptionalJson(request): OptionalJson<ForkRequest>,
) -> Result<Json<ForkReply>, ApiError> {
    let (at, trace) = (request.at.map(Id::get), traced.start(None));
    let version = version(request.version);
    let request = noetl_control::ForkRequest { at, workload: request.workload, trace, version };
    Ok(Json(forked(
        app.control.executions.by(caller.identity()).fork(&app.tenant, id, request).await?,
    )))
}

/// Try again what failed, as a new execution
///
/// It begins with what was decided before the failure, so that what was done is not done again. With
/// `from` it goes back to that step instead. One that was cancelled goes on where it was. With
/// `version` it does so with another version of the playbook, as a fork.
#[utoipa::path(
    post,
    path = "/api/executions/{id}/retry",
    tag = "executions",
    params(("id" = Id, Path)),
    request_body = Option<RetryRequest>,
    responses((status = 200, body = ForkReply), Failures),
)]
pub(crate) async fn retry(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    traced: Traced,
    OptionalJson(request): OptionalJson<RetryRequest>,
) -> Result<Json<ForkReply>, ApiError> {
    let RetryRequest { from, workload, version } = request;
    let (trace, version) = (traced.start(None), self::version(version));
    let request = noetl_control::RetryRequest { from, workload, trace, version };
    Ok(Json(forked(
        app.control.executions.by(caller.identity()).retry(&app.tenant, id, request).await?,
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

/// Cancel executions that began long ago
///
/// Those that run and began more than so many minutes ago, at most 500 per call.
#[utoipa::path(
    post,
    path = "/api/executions/cleanup",
    operation_id = "executions_cleanup",
    tag = "executions",
    request_body = Option<CleanupRequest>,
    responses((status = 200, body = CleanupReply), Failures),
)]
pub(crate) async fn cleanup(
    Scoped(app): Scoped,
    caller: Caller,
    Ids(ids): Ids,
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
        .executions
        .by(caller.identity())
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
