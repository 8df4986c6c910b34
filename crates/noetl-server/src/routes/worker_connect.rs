//! Connection of a remote worker: the upgrade to a WebSocket, which `noetl-connect` serves.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use noetl_connect::{ConnectionFailure, ConnectionHost, Conversions, Refusal};

use crate::app::App;
use crate::connections::Seat;
use crate::error::{ApiError, report_rejected};
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::credential::RequestCredential;
use crate::http::openapi::ErrorResponses;
use crate::routes::completions::completion;
use crate::routes::workers::shown;

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
    let upgrade = noetl_connect::with_limits(upgrade.map_err(|error| not_upgraded(&error))?);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let (ended, _watching) = credential.watch(&app);
        let served = noetl_connect::serve(host(&app), caller, ended, socket);
        app.worker_connections.track_future(Box::pin(served)).await;
        drop(seat);
    }))
}

fn host(app: &App) -> ConnectionHost {
    let control = &app.control;
    ConnectionHost {
        connections: control.remote.connections.clone(),
        leasing: control.remote.leasing.clone(),
        logs: control.journal.logs.clone(),
        content: control.data.content.clone(),
        worker_access: control.secrets.worker_access.clone(),
        tenant: app.tenant.clone(),
        stopping: app.stopping.clone(),
        conversions: Conversions {
            command: shown,
            completion,
            pool: |caller, asked| bound::pool(caller, asked).map_err(|error| refusal(&error)),
            refusal: |failure| {
                refusal(&match failure {
                    ConnectionFailure::Connect(error) => error.into(),
                    ConnectionFailure::Lease(error) => error.into(),
                    ConnectionFailure::Report(execution, error) => {
                        report_rejected(execution, error)
                    }
                    ConnectionFailure::Log(error) => error.into(),
                    ConnectionFailure::Store(error) => error.into(),
                })
            },
        },
    }
}

fn refusal(error: &ApiError) -> Refusal {
    Refusal {
        code: error.code(),
        message: error.message().to_owned(),
        is_client_error: error.is_client_error(),
    }
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
