//! How a worker is doing, for those who look after it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use noetl_worker::Counters;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Worker {
    counters: Arc<Counters>,
    slots: usize,
}

/// Answers until it is dropped.
pub(super) async fn serve(listener: TcpListener, counters: Arc<Counters>, slots: usize) {
    let router = Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .with_state(Worker { counters, slots });
    // Without it the worker works on; whoever asks hears nothing, which says enough.
    let _ = axum::serve(listener, router).await;
}

/// A worker that waits for its server is well: beginning anew would not bring that back.
async fn health(State(worker): State<Worker>) -> axum::Json<Value> {
    let server = if worker.counters.is_away() { "away" } else { "ok" };
    axum::Json(json!({
        "status": "ok",
        "server": server,
        "running": worker.counters.running(),
        "slots": worker.slots,
    }))
}

async fn metrics(State(worker): State<Worker>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], worker.counters.render(worker.slots))
}
