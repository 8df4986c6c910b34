//! Audit records of changes to documents and executions, written before the action.
//!
//! The event of an action also names the caller; see `Executions::by`. In open mode, callers have
//! no identity and no record is written.

use axum::http::Method;
use noetl_model::ExecutionId;

use super::caller::Caller;
use crate::app::App;
use crate::error::ApiError;

/// Audited changes of an execution: route and operation.
const OF_EXECUTIONS: [(&str, &str); 7] = [
    ("/api/executions/{id}/cancel", "execution.cancel"),
    ("/api/executions/{id}/stop", "execution.cancel"),
    ("/api/executions/{id}/finalize", "execution.finalize"),
    ("/api/executions/{id}/rerun", "execution.rerun"),
    ("/api/executions/{id}/fork", "execution.fork"),
    ("/api/executions/{id}/retry", "execution.retry"),
    ("/api/executions/{id}/answers/{command}", "execution.answer"),
];

/// Records a change of an execution if its route is audited.
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
    let app = app.clone().for_tenant(caller.tenant.clone());
    // The handler responds with 404 to an unknown execution.
    let Some(row) = app.control.journal.executions.get(&app.tenant, id).await? else {
        return Ok(());
    };
    record(&app, caller, operation, &row.path, Some(id)).await
}

/// Records an action before it happens. Does nothing for a caller without an identity.
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
    let administration = app.control.secrets.administration();
    let recorded =
        administration.record_action(&app.tenant, &caller.actor, operation, what, execution).await;
    recorded.map_err(|_| {
        let message = "the action could not be recorded, so it is not done";
        ApiError::unavailable("secret_audit_unavailable", message)
    })
}
