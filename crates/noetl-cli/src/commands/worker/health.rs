//! How a worker is doing, for those who look after it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use noetl_sources::Tally;
use noetl_worker::Counters;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What a page of metrics is.
const PAGE: &str = "text/plain; version=0.0.4; charset=utf-8";

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

/// The same for one that acts on a subscription.
pub(super) async fn serve_subscription(listener: TcpListener, tally: Arc<Tally>) {
    let health = || async { axum::Json(json!({ "status": "ok", "mode": "subscription" })) };
    let metrics = async move || ([(CONTENT_TYPE, PAGE)], tally.render());
    let router = Router::new().route("/health", get(health)).route("/metrics", get(metrics));
    let _ = axum::serve(listener, router).await;
}

/// A worker that waits for its server is well: beginning anew would not bring that back. Without its
/// bus it hears of commands later, and runs them all the same.
async fn health(State(worker): State<Worker>) -> axum::Json<Value> {
    let server = if worker.counters.is_away() { "away" } else { "ok" };
    let bus = match worker.counters.hears() {
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
