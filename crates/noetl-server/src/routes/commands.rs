//! Commands: reading and claiming them.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::commands::{ClaimReply, ClaimRequest, Command};
use noetl_model::CommandId;

use crate::error::{ApiError, not_claimed, unknown_command};
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Json, Path};
use crate::reads;

/// Read a command
#[utoipa::path(
    get,
    path = "/api/commands/{event_id}",
    tag = "workers",
    params(("event_id" = Id, Path)),
    responses((status = 200, body = Command), Failures),
)]
pub(crate) async fn command(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<CommandId>,
) -> Result<Json<Command>, ApiError> {
    let missing = || unknown_command(StatusCode::NOT_FOUND, id);
    reads::command(&app, &caller.scope(), id).await?.map(Json).ok_or_else(missing)
}

/// Claim a command
///
/// Repeating a claim is harmless; two workers never hold one command. A command that is over or
/// unknown is a conflict, so that a worker forgets it.
#[utoipa::path(
    post,
    path = "/api/commands/{event_id}/claim",
    operation_id = "commands_claim",
    tag = "workers",
    params(("event_id" = Id, Path)),
    request_body = ClaimRequest,
    responses((status = 200, body = ClaimReply), Failures),
)]
pub(crate) async fn claim(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<CommandId>,
    Json(request): Json<ClaimRequest>,
) -> Result<Json<ClaimReply>, ApiError> {
    if request.worker_id.trim().is_empty() {
        return Err(ApiError::invalid("invalid_body", "worker_id must not be empty"));
    }
    let scope = caller.scope();
    let command = reads::command(&app, &scope, id).await?;
    let command = command.ok_or_else(|| unknown_command(StatusCode::CONFLICT, id))?;
    app.control.reports.claim(&scope, id, &request.worker_id).await.map_err(not_claimed)?;
    Ok(Json(ClaimReply { status: "ok".to_owned(), event_id: id.into(), command }))
}
