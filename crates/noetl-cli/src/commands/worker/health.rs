//! Serves the health check and the metrics of a worker.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use noetl_sources::MessageCounters;
use noetl_worker::WorkerMetrics;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Content type of the Prometheus text format.
const PAGE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone)]
struct Worker {
    counters: Arc<WorkerMetrics>,
    slots: usize,
}

/// Serves `/health` and `/metrics` of a worker that runs steps. Runs until the task is aborted.
pub(super) async fn serve(listener: TcpListener, counters: Arc<WorkerMetrics>, slots: usize) {
    let router = Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .with_state(Worker { counters, slots });
    // If the listener fails, the worker continues; the failing health check reveals it.
    let _ = axum::serve(listener, router).await;
}

/// Serves `/health` and `/metrics` of a worker that runs one subscription.
pub(super) async fn serve_subscription(listener: TcpListener, tally: Arc<MessageCounters>) {
    let health = || async { axum::Json(json!({ "status": "ok", "mode": "subscription" })) };
    let metrics = async move || ([(CONTENT_TYPE, PAGE)], tally.render());
    let router = Router::new().route("/health", get(health)).route("/metrics", get(metrics));
    let _ = axum::serve(listener, router).await;
}

/// Returns the health of the worker. The status is `ok` even if the server is unavailable, because
/// a restart of the worker would not help. Without the bus, the worker receives commands later but
/// runs them all.
async fn health(State(worker): State<Worker>) -> axum::Json<Value> {
    let server = if worker.counters.is_away() { "away" } else { "ok" };
    let bus = match worker.counters.is_bus_up() {
        None => "none",
        Some(true) => "ok",
        Some(false) => "away",
    };
    axum::Json(json!({
        "status": "ok",
        "server": server,
        "bus": bus,
        "running": worker.counters.running(),
        "slots": worker.slots,
    }))
}

async fn metrics(State(worker): State<Worker>) -> impl IntoResponse {
    ([(CONTENT_TYPE, PAGE)], worker.counters.render(worker.slots))
}
