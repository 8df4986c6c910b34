//! Starting executions.

use axum::extract::State;
use noetl_api::Id;
use noetl_api::execute::{ExecuteReply, ExecuteRequest};
use noetl_control::StartRequest;

use crate::app::App;
use crate::error::ApiError;
use crate::http::extract::Json;

/// Start an execution
///
/// When this answers, the beginning is durable and the execution will go on, whatever becomes of
/// this process.
pub(crate) async fn execute(
    State(app): State<App>,
    Json(request): Json<ExecuteRequest>,
) -> Result<Json<ExecuteReply>, ApiError> {
    let started = app.control.executions.start(&app.tenant, wanted(request)?).await?;
    Ok(Json(ExecuteReply {
        execution_id: Id::text(started.execution.get()),
        status: "started".to_owned(),
        commands_generated: started.commands,
    }))
}

fn wanted(request: ExecuteRequest) -> Result<StartRequest, ApiError> {
    if request.dedup.is_some() {
        // Starting a second execution is what the caller wanted to rule out.
        let message = "dedup is not available in this version";
        return Err(ApiError::invalid("dedup_not_available", message));
    }
    Ok(StartRequest {
        catalog: request.catalog_id.map(Into::into),
        path: request.path,
        version: request.version.unwrap_or_default().number(),
        payload: request.payload,
        parent: request.parent_execution_id.map(Into::into),
        pool: request.execution_pool,
    })
}
