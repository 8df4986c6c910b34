//! Health probes of the process and the control plane.

use axum::http::StatusCode;
use noetl_api::health::{Alive, Health};
use noetl_model::ExecutionId;
use tracing::warn;

use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Checks that the process responds
///
/// Doesn't use the store, so that a slow store doesn't cause a restart of the process.
#[utoipa::path(
    get,
    path = "/health",
    tag = "health",
    responses((status = 200, body = Alive), ErrorResponses),
)]
pub(crate) async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

/// Checks that the control plane and its store respond
#[utoipa::path(
    get,
    path = "/api/health",
    tag = "health",
    responses((status = 200, body = Health), (status = 503, body = Health, description = "The store does not answer"), ErrorResponses),
)]
pub(crate) async fn health(Scoped(app): Scoped) -> (StatusCode, Json<Health>) {
    // A lookup by a key that doesn't exist is the cheapest request for every store.
    let answer = app.control.journal.executions.get(&app.tenant, ExecutionId::new(0)).await;
    if let Err(error) = &answer {
        warn!(%error, "store unavailable");
    }
    let (code, status, database, message) = match answer {
        Ok(_) => (StatusCode::OK, "ok", "connected", "the database answers"),
        Err(_) => {
            let message = "the database does not answer";
            (StatusCode::SERVICE_UNAVAILABLE, "unhealthy", "disconnected", message)
        }
    };
    // The control plane works without the bus, so a disconnected bus doesn't make it unhealthy.
    let nats = match app.bus.as_ref().map(|bus| bus.is_connected()) {
        None => "not_configured",
        Some(true) => "connected",
        Some(false) => "disconnected",
    };
    let health = Health {
        status: status.to_owned(),
        database: database.to_owned(),
        nats: nats.to_owned(),
        uptime_seconds: app.uptime().as_secs(),
        version: app.options.version.clone(),
        message: message.to_owned(),
        timestamp: Some(app.control.now()),
    };
    (code, Json(health))
}
