//! What a tenant has too much of, and what comes too fast.

use std::time::Duration;

use axum::http::StatusCode;
use noetl_control::OverQuota;

use super::ApiError;

impl ApiError {
    /// Something that may be asked again after a while.
    pub(crate) fn too_many(code: &'static str, message: String, after: Duration) -> Self {
        let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, code, message);
        // Whole seconds, none of them too few.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        Self { again: Some(seconds.max(1)), ..refused }
    }
}

impl From<OverQuota> for ApiError {
    fn from(over: OverQuota) -> Self {
        Self::too_many("quota_exceeded", over.to_string(), over.after)
    }
}
