//! What workers elsewhere and operators can meet.

use axum::http::StatusCode;
use noetl_control::{CallbackError, ClaimError, LeaseError, WorkerError};
use noetl_store::SqlError;

use super::{ApiError, not_claimed, unknown_command};

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
                Self::refused(StatusCode::NOT_IMPLEMENTED, "not_postgres", message)
            }
            SqlError::Schema(_) => Self::invalid("invalid_schema", message),
            SqlError::Refused(_) => Self::invalid("sql_error", message),
            SqlError::TooLarge => Self::invalid("too_many_rows", message),
            SqlError::Store(failure) => failure.into(),
        }
    }
}
