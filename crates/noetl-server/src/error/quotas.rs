//! Error responses for quotas and rate limits.

use std::time::Duration;

use axum::http::StatusCode;
use noetl_catalog::QuotaExceeded;

use super::ApiError;

impl ApiError {
    /// Creates a 429 error with a `Retry-After` of `after`.
    pub(crate) fn too_many(code: &'static str, message: String, after: Duration) -> Self {
        let refused = Self::with_status(StatusCode::TOO_MANY_REQUESTS, code, message);
        // Rounds up to whole seconds.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        Self { retry_after: Some(seconds.max(1)), ..refused }
    }
}

impl From<QuotaExceeded> for ApiError {
    fn from(over: QuotaExceeded) -> Self {
        Self::too_many("quota_exceeded", over.to_string(), over.after)
    }
}
