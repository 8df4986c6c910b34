//! Error responses of access checks.

use axum::http::StatusCode;
use noetl_access::AccessError;

use super::ApiError;

impl From<AccessError> for ApiError {
    fn from(failure: AccessError) -> Self {
        match failure {
            AccessError::Unauthenticated { code, message } => {
                Self::with_status(StatusCode::UNAUTHORIZED, code, message)
            }
            AccessError::Forbidden { code, message } => {
                Self::with_status(StatusCode::FORBIDDEN, code, message)
            }
            AccessError::Unavailable { code, message } => Self::unavailable(code, message),
            AccessError::Store(failure) => failure.into(),
        }
    }
}
