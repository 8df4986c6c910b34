//! Headers that keep responses from being stored or taken for something else.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::response::Parts;
use axum::middleware::Next;
use axum::response::Response;

/// Paths whose responses belong to their caller, and may hold secrets.
const PRIVATE: [&str; 2] = ["/api/", "/ingress/"];

/// Policy of bytes that callers stored: they load nothing, run nothing, and are framed by nobody.
const STORED: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Adds to each response that its type is what it says, and to those of the API that nobody may
/// store it.
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

/// Returns a response of bytes that a caller stored, which no browser runs as a page.
pub(crate) fn stored(response: Response) -> Response {
    let (mut parts, body): (Parts, _) = response.into_parts();
    parts.headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(STORED));
    Response::from_parts(parts, body)
}
