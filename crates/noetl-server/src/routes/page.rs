//! HTML page of the API reference.

use axum::http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::response::{Html, IntoResponse};

/// Content security policy of the page: inline scripts and styles, and requests to its own origin.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Returns the OpenAPI document as a page. It contains no data, so it needs no token.
pub(crate) async fn page() -> impl IntoResponse {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, Html(include_str!("api-page.html")))
}
