//! Responses for unknown paths.

use axum::http::Uri;

use crate::error::ApiError;

/// Creates the 404 error for an unknown path.
pub(crate) async fn unknown_path(uri: Uri) -> ApiError {
    ApiError::not_found("unknown_path", format!("there is nothing at {}", uri.path()))
}
