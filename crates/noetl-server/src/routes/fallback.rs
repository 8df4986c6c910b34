//! Responses for unknown paths and methods.

use axum::http::{Method, StatusCode, Uri};

use crate::error::ApiError;
use crate::http::roles::verbs;

/// Creates the 404 error for an unknown path.
pub(crate) async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found("unknown_path", format!("there is nothing at {}", uri.path()))
}

/// Creates the 405 error for a method that a path doesn't support, with the supported ones in
/// `Allow`.
pub(crate) fn wrong_verb(method: &Method, uri: &Uri, pattern: &str) -> ApiError {
    let message = format!("{method} is not possible at {}", uri.path());
    let refusal =
        ApiError::with_status(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    refusal.allowing(verbs(pattern))
}
