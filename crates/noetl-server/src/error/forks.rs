//! Error responses for forks, retries, and reruns of an execution.

use noetl_journal::ForkError;

use super::{ApiError, unknown_execution};

impl From<ForkError> for ApiError {
    fn from(failure: ForkError) -> Self {
        let message = failure.to_string();
        match failure {
            ForkError::NotFound(id) => unknown_execution(id),
            ForkError::Imported(_) => Self::invalid("imported_execution", message),
            ForkError::NoEvent { .. } => Self::invalid("event_not_found", message),
            ForkError::NoStep { .. } => Self::invalid("step_not_entered", message),
            ForkError::Running(_) => Self::invalid("still_running", message),
            ForkError::Completed(_) => Self::invalid("nothing_to_retry", message),
            ForkError::Unfit { .. } => Self::invalid("version_does_not_fit", message),
            ForkError::TooLong(_) => Self::invalid("log_too_long", message),
            ForkError::Start(failure) => failure.into(),
            ForkError::Store(failure) => failure.into(),
        }
    }
}
