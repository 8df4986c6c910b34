//! Route that starts one execution.

pub(crate) mod batch;

use std::time::Duration;

use noetl_api::Id;
use noetl_api::execute::{ExecuteReply, ExecuteRequest, StartDedup};
use noetl_journal::{StartRequest, StartedExecution};
use noetl_model::{ExecutionId, SubscriptionId};
use noetl_triggers::{DedupKey, DedupStart, WINDOW_MAX};

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::Json;
use crate::http::granted;
use crate::http::openapi::ErrorResponses;
use crate::http::trace_context::RequestTrace;
use crate::http::{acted, bound};

/// Starts an execution
///
/// The response is sent once the start is durable: the execution continues even if this process
/// ends. With `dedup`, a key that was already used within its window starts no execution. The trace
/// that `trace` names, or else the trace of the request, applies to the execution, its commands,
/// and the executions they start.
#[utoipa::path(
    post,
    path = "/api/execute",
    tag = "executions",
    request_body = ExecuteRequest,
    responses((status = 200, body = ExecuteReply), ErrorResponses),
)]
pub(crate) async fn execute(
    Scoped(app): Scoped,
    caller: Caller,
    traced: RequestTrace,
    Json(request): Json<ExecuteRequest>,
) -> Result<Json<ExecuteReply>, ApiError> {
    let outcome = start(&app, &caller, &traced, request).await;
    count(&app, "single", &outcome);
    outcome.map(Json)
}

fn count(app: &App, entry: &str, outcome: &Result<ExecuteReply, ApiError>) {
    let label = match outcome {
        Ok(reply) if reply.status == DUPLICATE => "duplicate",
        Ok(_) => "new",
        Err(_) => "error",
    };
    app.control.journal.metrics.execute_outcomes.with_label_values(&[entry, label]).inc();
}

/// Maximum characters of a dedup key and of a pool name. Databases index both, which limits their
/// length.
const KEY_MAX: usize = 500;
const POOL_MAX: usize = 200;

/// Status of a start whose dedup key was already used.
const DUPLICATE: &str = "duplicate";

async fn start(
    app: &App,
    caller: &Caller,
    traced: &RequestTrace,
    mut request: ExecuteRequest,
) -> Result<ExecuteReply, ApiError> {
    // An execution that a step starts belongs to the step's tenant, even if a worker of another
    // tenant runs the step.
    let app = match request.parent_execution_id {
        Some(parent) => &app.clone().for_execution(caller, parent.into()).await?,
        None => app,
    };
    bound::check_start(app, caller, request.parent_execution_id.map(Into::into)).await?;
    let catalog = request.catalog_id.map(Into::into);
    granted::check_entry(app, caller, request.path.as_deref(), catalog).await?;
    let named = request.path.clone().or_else(|| request.catalog_id.map(|id| id.to_string()));
    let parent = request.parent_execution_id.map(Into::into);
    let what = named.unwrap_or_default();
    acted::record(app, caller, "execution.start", &what, parent).await?;
    let dedup = request.dedup.take();
    let request = wanted(traced, request)?;
    let Some(dedup) = dedup else {
        let executions = app.control.journal.executions.with_actor(caller.identity());
        return Ok(started(executions.start(&app.tenant, request).await?));
    };
    let once = dedup_key(dedup, &request)?;
    let starts = app.control.triggers.starts.with_actor(caller.identity());
    Ok(match starts.start_once(&app.tenant, request, once).await? {
        DedupStart::New(new) => started(new),
        DedupStart::Duplicate(execution) => ExecuteReply {
            execution_id: Id::text(execution.get()),
            status: DUPLICATE.to_owned(),
            commands_generated: 0,
        },
    })
}

fn started(started: StartedExecution) -> ExecuteReply {
    ExecuteReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
    }
}

fn dedup_key(dedup: StartDedup, request: &StartRequest) -> Result<DedupKey, ApiError> {
    if dedup.key.is_empty() {
        return Err(ApiError::invalid("invalid_dedup", "dedup.key must not be empty"));
    }
    if dedup.key.chars().count() > KEY_MAX {
        let message = format!("dedup.key has at most {KEY_MAX} characters");
        return Err(ApiError::invalid("invalid_dedup", message));
    }
    let window = Duration::from_secs(dedup.window_secs);
    if window.is_zero() || window > WINDOW_MAX {
        let most = WINDOW_MAX.as_secs();
        let message = format!("dedup.window_secs is a number from 1 to {most}");
        return Err(ApiError::invalid("invalid_dedup", message));
    }
    let scope = SubscriptionId::new(request.parent.map_or(0, ExecutionId::get));
    Ok(DedupKey { scope, key: dedup.key, window, is_noted: true })
}

fn wanted(traced: &RequestTrace, request: ExecuteRequest) -> Result<StartRequest, ApiError> {
    if request.execution_pool.as_ref().is_some_and(|pool| pool.chars().count() > POOL_MAX) {
        let message = format!("execution_pool has at most {POOL_MAX} characters");
        return Err(ApiError::invalid("invalid_pool", message));
    }
    Ok(StartRequest {
        trace: traced.start(request.trace.as_ref()),
        catalog: request.catalog_id.map(Into::into),
        path: request.path,
        version: request.version.unwrap_or_default().number(),
        payload: request.payload,
        parent: request.parent_execution_id.map(Into::into),
        pool: request.execution_pool,
    })
}
