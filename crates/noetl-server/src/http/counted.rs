//! Metrics of write requests, by route and status.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;

/// Counts a request unless its method only reads. The label is the route pattern, never the
/// requested path, which the caller controls.
pub(crate) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let started = Instant::now();
    let response = next.run(request).await;
    if let Some(path) = path.filter(|_| writes) {
        let metrics = &app.control.journal.metrics;
        let endpoint = path.as_str();
        let status = response.status();
        metrics.write_requests.with_label_values(&[endpoint, status.as_str()]).inc();
        let seconds = started.elapsed().as_secs_f64();
        metrics.write_request_seconds.with_label_values(&[endpoint]).observe(seconds);
    }
    response
}
