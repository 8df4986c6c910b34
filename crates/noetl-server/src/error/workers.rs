//! Error responses for remote workers and operators.

use axum::http::StatusCode;
use noetl_journal::CallbackError;
use noetl_remote::{ClaimError, ConnectError, LeaseError, WorkerError};
use noetl_results::ContentError;
use noetl_store::{BlobError, SqlError};
use tracing::error;

use super::{ApiError, chain, not_claimed, unknown_command};

impl From<WorkerError> for ApiError {
    fn from(failure: WorkerError) -> Self {
        let message = failure.to_string();
        match failure {
            WorkerError::Name { .. } => Self::invalid("invalid_worker", message),
            WorkerError::Unknown { .. } => Self::not_found("runtime_not_found", message),
            WorkerError::Store(failure) => failure.into(),
        }
    }
}

impl From<LeaseError> for ApiError {
    fn from(failure: LeaseError) -> Self {
        let message = failure.to_string();
        match failure {
            LeaseError::Worker(failure) => failure.into(),
            LeaseError::Amount { .. } => Self::invalid("invalid_amount", message),
            LeaseError::Submit(failure) => failure.into(),
            LeaseError::Store(failure) => failure.into(),
        }
    }
}

impl From<ConnectError> for ApiError {
    fn from(failure: ConnectError) -> Self {
        let message = failure.to_string();
        match failure {
            ConnectError::Range { .. } => Self::invalid("invalid_amount", message),
            ConnectError::Name { .. } => Self::invalid("invalid_name", message),
            ConnectError::Key => Self::invalid("invalid_key", message),
            ConnectError::Lease(failure) => failure.into(),
        }
    }
}

impl From<ClaimError> for ApiError {
    fn from(failure: ClaimError) -> Self {
        let message = failure.to_string();
        match failure {
            ClaimError::Unknown(id) => unknown_command(StatusCode::CONFLICT, id),
            ClaimError::Lacking(_) => Self::conflict("command_not_portable", message),
            ClaimError::Failed(_) => Self::conflict("command_failed", message),
            ClaimError::Report(failure) => not_claimed(failure),
            ClaimError::Store(failure) => failure.into(),
        }
    }
}

impl From<ContentError> for ApiError {
    fn from(failure: ContentError) -> Self {
        let message = failure.to_string();
        match failure {
            ContentError::Name(_) => Self::invalid("invalid_digest", message),
            ContentError::Other { .. } => Self::invalid("other_content", message),
            ContentError::TooLarge => {
                Self::with_status(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
            }
            ContentError::Missing(_) => Self::not_found("content_not_found", message),
            ContentError::Place(BlobError::Place(failure)) => failure.into(),
            ContentError::Place(BlobError::Missing { .. }) => {
                Self::not_found("content_not_found", message)
            }
            ContentError::Place(BlobError::Corrupt { .. }) => {
                error!(cause = chain(&failure), "blob is damaged");
                Self::internal("the content is damaged")
            }
            ContentError::Spool(_) => {
                error!(cause = chain(&failure), "failed to spool request body");
                Self::unavailable("no_room", message)
            }
        }
    }
}

impl From<CallbackError> for ApiError {
    fn from(failure: CallbackError) -> Self {
        match failure {
            CallbackError::Submit(failure) => failure.into(),
            CallbackError::Store(failure) => failure.into(),
        }
    }
}

impl From<SqlError> for ApiError {
    fn from(failure: SqlError) -> Self {
        let message = failure.to_string();
        match failure {
            SqlError::Unsupported => {
                let message = "this server keeps its data in SQLite, which runs no SQL of others; \
                               stop it and open the file with sqlite3, or use a Postgres store";
                Self::with_status(StatusCode::NOT_IMPLEMENTED, "not_postgres", message)
            }
            SqlError::Schema(_) => Self::invalid("invalid_schema", message),
            SqlError::Refused(_) => Self::invalid("sql_error", message),
            SqlError::TooLarge => Self::invalid("too_many_rows", message),
            SqlError::Store(failure) => failure.into(),
        }
    }
}
