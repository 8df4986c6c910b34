//! Errors of access checks.

use noetl_store::StoreError;

/// Error of an access check. Messages are safe to show to callers.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The credential of the caller is missing, malformed, or not valid.
    #[error("{message}")]
    Unauthenticated { code: &'static str, message: String },
    /// The caller may not do this.
    #[error("{message}")]
    Forbidden { code: &'static str, message: String },
    /// The check is not possible now. Safe to retry.
    #[error("{message}")]
    Unavailable { code: &'static str, message: String },
    /// The store failed to read an access token.
    #[error("failed to read access token")]
    Store(#[from] StoreError),
}

impl AccessError {
    /// Creates the error of a caller without a valid credential.
    pub(crate) fn unknown_caller(message: impl Into<String>) -> Self {
        Self::Unauthenticated { code: "not_authenticated", message: message.into() }
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::Forbidden { code, message: message.into() }
    }

    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::Unavailable { code, message: message.into() }
    }
}
