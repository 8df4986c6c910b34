//! What is counted, for Prometheus.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use noetl_control::metrics::CONTENT_TYPE as TEXT;

use crate::app::App;

/// What is counted
pub(crate) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    app.control.measure().await;
    ([(CONTENT_TYPE, TEXT)], app.control.metrics.text())
}
