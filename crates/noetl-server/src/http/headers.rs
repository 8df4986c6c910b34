//! Headers that forbid caching, content sniffing, and running stored bytes as a page.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::response::Parts;
use axum::middleware::Next;
use axum::response::Response;

/// Paths whose responses are private to the caller and may contain secrets.
const PRIVATE: [&str; 2] = ["/api/", "/ingress/"];

/// Content security policy of stored bytes: no loads, no scripts, and no framing.
const STORED: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Adds `X-Content-Type-Options: nosniff` to each response, and `Cache-Control: no-store` below
/// [`PRIVATE`] paths.
pub(crate) async fn add(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_private = PRIVATE.iter().any(|private| path.starts_with(private));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_private {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Adds the content security policy of stored bytes to a response, so that no browser runs it as a
/// page.
pub(crate) fn stored(response: Response) -> Response {
    let (mut parts, body): (Parts, _) = response.into_parts();
    parts.headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(STORED));
    Response::from_parts(parts, body)
}
