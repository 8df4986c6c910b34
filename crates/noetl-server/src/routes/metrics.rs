//! Metrics in the Prometheus text format.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use noetl_journal::metrics::CONTENT_TYPE as TEXT;

use crate::http::caller::Scoped;
use crate::http::openapi::ErrorResponses;

/// Returns metrics in the Prometheus text format
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"), ErrorResponses),
)]
pub(crate) async fn metrics(Scoped(app): Scoped) -> impl IntoResponse {
    app.control.measure().await;
    ([(CONTENT_TYPE, TEXT)], app.control.journal.metrics.text())
}
