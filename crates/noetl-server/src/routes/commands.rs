//! Commands: reading and claiming them.

use std::time::Duration;

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::commands::{ClaimReply, ClaimRequest, Command};
use noetl_control::lower::Dialect;
use noetl_model::CommandId;

use crate::app::App;
use crate::error::{ApiError, not_claimed, unknown_command};
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Json, Path};
use crate::{reads, shape};

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
    if !bound::owns(&app, &caller, id).await? {
        return Err(missing());
    }
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

/// The name of our own words.
const NATIVE: &str = "native";

/// How long the answer to a claim waits that makes a published worker ask again at once: it would do
/// so hundreds of times a second for as long as a store is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// A published worker forgets a command at a conflict, and asks again at anything else.
fn is_asked_again_at_once(status: StatusCode) -> bool {
    status != StatusCode::CONFLICT && !status.is_success()
}

/// Claims a command for a published worker.
async fn lowered(
    app: &App,
    caller: &Caller,
    id: CommandId,
    worker: &str,
) -> Result<Command, ApiError> {
    let claims = &app.control.claims;
    let claimed =
        claims.claim(&caller.scope(), id, worker, &caller.actor, Dialect::Worker552).await?;
    Ok(shape::claimed(&claimed))
}

/// Claims a command for a worker that knows our words.
async fn native(
    app: &App,
    caller: &Caller,
    id: CommandId,
    worker: &str,
) -> Result<Command, ApiError> {
    let scope = caller.scope();
    let command = reads::command(app, &scope, id).await?;
    let command = command.ok_or_else(|| unknown_command(StatusCode::CONFLICT, id))?;
    app.control.reports.claim(&scope, id, worker).await.map_err(not_claimed)?;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_worker_repeats_at_once_is_held_back() {
        for told in [StatusCode::OK, StatusCode::CREATED, StatusCode::CONFLICT] {
            assert!(!is_asked_again_at_once(told), "{told}");
        }
        for repeated in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INTERNAL_SERVER_ERROR] {
            assert!(is_asked_again_at_once(repeated), "{repeated}");
        }
    }
}
