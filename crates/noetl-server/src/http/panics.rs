//! Turns a panic in a handler into an error response, so that the connection stays open.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use crate::error::ApiError;

/// Responds with 500 if the inner service panics.
pub(crate) async fn caught(request: Request, next: Next) -> Response {
    let route = format!("{} {}", request.method(), request.uri().path());
    // State owned by the handler is dropped, and shared state is protected by its own locks.
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(route, "handler panicked");
        ApiError::internal("the request failed in a way it never should").into_response()
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_and_the_connection_lives() {
        let explode = get(async || -> &'static str { panic!("a test of panics") });
        let router = Router::new().route("/", explode).layer(from_fn(caught));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        // The typed client sets up what every client of the process needs.
        noetl_api::Client::new(&base).unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        for _ in 0..2 {
            let response = http.get(&base).send().await.unwrap();
            assert_eq!(response.status().as_u16(), 500);
            let body: noetl_api::ErrorBody = response.json().await.unwrap();
            assert_eq!(body.code, "internal");
            assert!(!body.error.contains("a test of panics"));
        }
    }
}
