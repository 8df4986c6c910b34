//! A panic in a handler is an answer of that request, not the end of its connection.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use crate::error::ApiError;

/// Answers 500 when the rest of the stack panics.
pub(crate) async fn caught(request: Request, next: Next) -> Response {
    let route = format!("{} {}", request.method(), request.uri().path());
    // What a handler held is gone with it; what it shares is guarded by its own locks.
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(route, "a handler panicked");
        ApiError::internal("the request failed in a way it never should").into_response()
    })
}
