//! Routes that read and claim commands.

use std::time::Duration;

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::commands::{ClaimReply, ClaimRequest, Command};
use noetl_compat::Dialect;
use noetl_model::CommandId;

use crate::app::App;
use crate::error::{ApiError, not_claimed, unknown_command};
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;
use crate::{event_queries, shape};

/// Reads a command
#[utoipa::path(
    get,
    path = "/api/commands/{event_id}",
    tag = "workers",
    params(("event_id" = Id, Path)),
    responses((status = 200, body = Command), ErrorResponses),
)]
pub(crate) async fn command(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<CommandId>,
) -> Result<Json<Command>, ApiError> {
    let missing = || unknown_command(StatusCode::NOT_FOUND, id);
    if !bound::owns(&app, &caller, id).await? {
        return Err(missing());
    }
    event_queries::command(&app, &caller.scope(), id).await?.map(Json).ok_or_else(missing)
}

/// Claims a command
///
/// A claim is idempotent, and no two workers hold the same command. A command that ended or is
/// unknown is a conflict, so that the worker drops it.
#[utoipa::path(
    post,
    path = "/api/commands/{event_id}/claim",
    operation_id = "commands_claim",
    tag = "workers",
    params(("event_id" = Id, Path)),
    request_body = ClaimRequest,
    responses((status = 200, body = ClaimReply), ErrorResponses),
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
    if !bound::owns(&app, &caller, id).await? {
        return Err(unknown_command(StatusCode::CONFLICT, id));
    }
    let claimed = match request.dialect.as_deref() {
        None => lowered(&app, &caller, id, &request.worker_id).await,
        Some(NATIVE) => native(&app, &caller, id, &request.worker_id).await,
        Some(other) => {
            let message = format!("dialect must be {NATIVE}, or be left out, not '{other}'");
            return Err(ApiError::invalid("invalid_dialect", message));
        }
    };
    match claimed {
        Ok(command) => {
            Ok(Json(ClaimReply { status: "ok".to_owned(), event_id: id.into(), command }))
        }
        Err(error) => {
            if is_asked_again_at_once(error.status()) {
                tokio::time::sleep(PATIENCE).await;
            }
            Err(error)
        }
    }
}

/// Dialect name of this control plane's own command format.
const NATIVE: &str = "native";

/// Delay of an error response to a claim. A published worker retries such a claim immediately,
/// which would cause hundreds of requests per second while a store is unavailable.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns `true` if a published worker retries a claim at once after this status. A conflict makes
/// it drop the command.
fn is_asked_again_at_once(status: StatusCode) -> bool {
    status != StatusCode::CONFLICT && !status.is_success()
}

/// Claims a command for a published worker, in that worker's format.
async fn lowered(
    app: &App,
    caller: &Caller,
    id: CommandId,
    worker: &str,
) -> Result<Command, ApiError> {
    let claims = &app.control.remote.claims;
    let claimed =
        claims.claim(&caller.scope(), id, worker, &caller.actor, Dialect::Worker552).await?;
    Ok(shape::claimed(&claimed))
}

/// Claims a command for a worker that uses the native format.
async fn native(
    app: &App,
    caller: &Caller,
    id: CommandId,
    worker: &str,
) -> Result<Command, ApiError> {
    let scope = caller.scope();
    let command = event_queries::command(app, &scope, id).await?;
    let command = command.ok_or_else(|| unknown_command(StatusCode::CONFLICT, id))?;
    app.control.remote.reports.claim(&scope, id, worker).await.map_err(not_claimed)?;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_immediate_repeats_of_a_worker_are_delayed() {
        for told in [StatusCode::OK, StatusCode::CREATED, StatusCode::CONFLICT] {
            assert!(!is_asked_again_at_once(told), "{told}");
        }
        for repeated in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INTERNAL_SERVER_ERROR] {
            assert!(is_asked_again_at_once(repeated), "{repeated}");
        }
    }
}
