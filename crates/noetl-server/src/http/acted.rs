//! Records of what callers do to documents and executions: in the audit, before it is done, and in
//! the log of the execution.
//!
//! A caller without an identity, in open mode, leaves none: there is nothing to tell apart.

use axum::http::Method;
use noetl_model::ExecutionId;
use tracing::warn;

use super::caller::Caller;
use crate::app::App;
use crate::error::ApiError;

/// Changes of one execution, by route.
const OF_EXECUTIONS: [(&str, &str); 7] = [
    ("/api/executions/{id}/cancel", "execution.cancel"),
    ("/api/executions/{id}/stop", "execution.cancel"),
    ("/api/executions/{id}/finalize", "execution.finalize"),
    ("/api/executions/{id}/rerun", "execution.rerun"),
    ("/api/executions/{id}/fork", "execution.fork"),
    ("/api/executions/{id}/retry", "execution.retry"),
    ("/api/executions/{id}/answers/{command}", "execution.answer"),
];

/// Records a change of one execution, by the route that makes it.
pub(super) async fn record_route(
    app: &App,
    caller: &Caller,
    method: &Method,
    route: &str,
    path: &str,
) -> Result<(), ApiError> {
    let known = OF_EXECUTIONS.iter().find(|(of, _)| *of == route && *method == Method::POST);
    let Some((_, operation)) = known else { return Ok(()) };
    let Some(id) = path.split('/').nth(3).and_then(|id| id.parse().ok()) else { return Ok(()) };
    let app = app.clone().of(caller.tenant.clone());
    // One that does not exist is the handler's to refuse.
    let Some(row) = app.control.executions.get(&app.tenant, id).await? else { return Ok(()) };
    record(&app, caller, operation, &row.path, Some(id)).await?;
    record_in_log(&app, caller, operation, id).await;
    Ok(())
}

/// Records what a caller is about to do.
pub(crate) async fn record(
    app: &App,
    caller: &Caller,
    operation: &'static str,
    what: &str,
    execution: Option<ExecutionId>,
) -> Result<(), ApiError> {
    if !caller.has_identity() {
        return Ok(());
    }
    let administration = app.control.administration();
    let recorded =
        administration.record_action(&app.tenant, &caller.actor, operation, what, execution).await;
    recorded.map_err(|_| {
        let message = "the action could not be recorded, so it is not done";
        ApiError::unavailable("secret_audit_unavailable", message)
    })
}

/// Records the caller in the execution's event log. The audit has the action already, so a failure
/// here doesn't stop the request.
pub(crate) async fn record_in_log(
    app: &App,
    caller: &Caller,
    operation: &'static str,
    execution: ExecutionId,
) {
    if !caller.has_identity() {
        return;
    }
    let recorded = app.control.reports.record_actor(execution, &caller.actor, operation).await;
    if let Err(error) = recorded {
        warn!(execution.id = %execution, %error, operation, "caller not recorded in the log");
    }
}
