//! Requests of remote workers: the long poll for commands, and the heartbeat that renews leases.

use std::time::Duration;

use noetl_api::Id;
use noetl_api::workers::{
    CommandLeaseRequest, HeartbeatReply, HeartbeatRequest, IssuedRow, LeaseReply, LeasedCommand,
};
use noetl_model::CommandId;
use noetl_model::row::EventRow;
use noetl_remote::{LeasedRow, WAIT_MAX};

use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;
use crate::shape;

/// Leases commands to a worker
///
/// Returns up to `max` commands as soon as one is available, or none when the wait time has passed.
/// A lease lasts until it expires without a heartbeat that names its command.
#[utoipa::path(
    post,
    path = "/api/worker/lease",
    operation_id = "worker_lease",
    tag = "workers",
    request_body = CommandLeaseRequest,
    responses((status = 200, body = LeaseReply), ErrorResponses),
)]
pub(crate) async fn lease(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<CommandLeaseRequest>,
) -> Result<Json<LeaseReply>, ApiError> {
    let request = noetl_remote::LongPoll {
        worker: request.worker_id,
        pool: bound::pool(&caller, request.pool)?,
        kinds: request.kinds,
        max: request.max,
        wait: wait(request.wait_seconds)?,
        public_key: request.public_key.filter(|key| !key.is_empty()),
    };
    let leased = app.control.remote.leasing.lease(&app.tenant, &caller.scope(), request).await?;
    let commands = leased.iter().map(shown).collect();
    let lease_seconds = app.control.remote.leasing.duration().as_secs();
    Ok(Json(LeaseReply { commands, lease_seconds }))
}

/// Renews the leases of a worker
///
/// Renews the leases of all listed commands. Returns the commands that were cancelled, and those
/// the worker no longer holds.
#[utoipa::path(
    post,
    path = "/api/worker/heartbeat",
    operation_id = "worker_heartbeat",
    tag = "workers",
    request_body = HeartbeatRequest,
    responses((status = 200, body = HeartbeatReply), ErrorResponses),
)]
pub(crate) async fn heartbeat(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<HeartbeatRequest>,
) -> Result<Json<HeartbeatReply>, ApiError> {
    let mut commands: Vec<CommandId> = Vec::with_capacity(request.commands.len());
    let mut foreign = Vec::new();
    for command in request.commands.into_iter().map(Into::into) {
        match bound::owns(&app, &caller, command).await? {
            true => commands.push(command),
            false => foreign.push(command),
        }
    }
    let leasing = &app.control.remote.leasing;
    let renewed =
        leasing.renew(&app.tenant, &caller.scope(), &request.worker_id, &commands).await?;
    let ids = |commands: Vec<CommandId>| commands.into_iter().map(Id::from).collect();
    Ok(Json(HeartbeatReply {
        status: "ok".to_owned(),
        cancel: ids(renewed.cancel),
        lost: ids(renewed.lost.into_iter().chain(foreign).collect()),
        lease_seconds: leasing.duration().as_secs(),
    }))
}

fn wait(seconds: f64) -> Result<Duration, ApiError> {
    let most = WAIT_MAX.as_secs_f64();
    if (0.0..=most).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let message = format!("wait_seconds must be from 0 to {most}, not {seconds}");
    Err(ApiError::invalid("invalid_wait", message))
}

/// Converts a leased command to its API form. Cannot fail: the command is already claimed and must
/// reach the worker.
pub(crate) fn shown(leased: &LeasedRow) -> LeasedCommand {
    let LeasedRow { row, event, issued, .. } = leased;
    let kept = EventRow::from(&**event);
    LeasedCommand {
        event_id: row.id.into(),
        tenant_id: leased.tenant().to_string(),
        execution_id: row.execution.into(),
        node_name: row.step.to_string(),
        action: row.tool.to_string(),
        meta: shape::command_meta(row, issued, leased.execution()),
        issued: IssuedRow {
            seq: event.seq.0,
            created_at: event.at,
            context: kept.context.and_then(shape::raw),
            meta: kept.meta.and_then(shape::raw),
        },
    }
}
