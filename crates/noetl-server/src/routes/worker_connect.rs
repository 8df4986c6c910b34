//! Connection of a remote worker: a WebSocket over which the server pushes commands.
//!
//! `docs/protocol.md` describes the protocol. The session in `noetl-remote` claims commands and
//! records completions; this module receives and sends frames, and ends the connection.

mod beats;
mod completing;
mod errors;
mod handshake;
mod incoming;
mod line;
mod outbox;
mod socket;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use noetl_api::connection::FRAME_MAX;

use crate::app::App;
use crate::connections::Seat;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::credential::RequestCredential;
use crate::http::openapi::ErrorResponses;

/// Size in bytes at which the server stops reading a frame. Frames between [`FRAME_MAX`] and this
/// size are read, so that the worker reads the error instead of a reset connection.
const READ_MAX: usize = 2 * FRAME_MAX;

/// Initial size of the buffers of a connection, in bytes. A worker has few connections, and most
/// frames are small.
const BUFFER: usize = 16 << 10;

/// Connects a worker
///
/// Upgrades to a WebSocket over which the server pushes commands and the worker sends completions,
/// heartbeats, and step logs. Frames are JSON objects, or arrays of objects, of at most 1 MiB: the
/// worker sends `WorkerMessage`, the server `ServerMessage`. See the documentation of the worker
/// protocol.
#[utoipa::path(
    get,
    path = "/api/worker/connect",
    operation_id = "worker_connect",
    tag = "workers",
    responses(
        (status = 101, description = "The connection is a WebSocket"),
        (status = 426, description = "The request is not an upgrade to a WebSocket"),
        ErrorResponses,
    ),
)]
pub(crate) async fn connect(
    Scoped(app): Scoped,
    caller: Caller,
    credential: RequestCredential,
    ConnectionSeat(seat): ConnectionSeat,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| not_upgraded(&rejection))?;
    let upgrade = upgrade
        .max_message_size(READ_MAX)
        .max_frame_size(READ_MAX)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let connections = app.worker_connections.clone();
        let served = line::serve(app, caller, credential, socket);
        connections.track_future(Box::pin(served)).await;
        drop(seat);
    }))
}

fn not_upgraded(rejection: &WebSocketUpgradeRejection) -> ApiError {
    let message = format!("this path is for WebSocket connections: {rejection}");
    ApiError::with_status(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
}

/// Extractor of the permit of the request's connection. An upgraded connection retains it.
pub(crate) struct ConnectionSeat(Option<Arc<Seat>>);

impl FromRequestParts<App> for ConnectionSeat {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Arc<Seat>>().cloned()))
    }
}
