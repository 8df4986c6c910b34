//! What is not a route.

use axum::http::{Method, StatusCode, Uri};

use crate::error::ApiError;
use crate::http::roles::verbs;

/// There is nothing at this path.
pub(crate) async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found("unknown_path", format!("there is nothing at {}", uri.path()))
}

/// The path is known, the verb is not one of its own. Says which are.
pub(crate) fn wrong_verb(method: &Method, uri: &Uri, pattern: &str) -> ApiError {
    let message = format!("{method} is not possible at {}", uri.path());
    let refusal = ApiError::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    refusal.allowing(verbs(pattern))
}
