//! What a tenant has too much of, and what comes too fast.

use std::time::Duration;

use axum::http::StatusCode;
use noetl_control::OverQuota;

use super::ApiError;
use crate::http::pace::TooSlow;

impl ApiError {
    /// A body whose sender was too slow.
    pub(crate) fn too_slow(slow: &TooSlow) -> Self {
        Self::refused(StatusCode::REQUEST_TIMEOUT, "body_too_slow", slow.to_string())
    }

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
