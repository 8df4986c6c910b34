//! Errors of recording a report.

use std::sync::Arc;

use noetl_journal::SubmitError;
use noetl_model::{DEPTH_MAX, ExecutionId};
use noetl_results::ResultError;
use noetl_store::StoreError;

use crate::workers::WorkerError;

/// Reasons a report was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The execution does not exist.
    #[error("execution {0} not found")]
    UnknownExecution(ExecutionId),
    /// Only the engine may write this event type.
    #[error("'{0}' is decided by the control plane and cannot be reported")]
    Reserved(String),
    /// The event type is malformed.
    #[error("event_type must be 1 to 200 letters, digits or . _ - : ; got '{0}'")]
    BadType(String),
    /// The payload or metadata could be written but not read back.
    #[error("the payload or meta nests more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// The name is not a valid name of a remote worker.
    #[error(transparent)]
    Worker(WorkerError),
    /// Another worker has claimed the command.
    #[error("Command already claimed by {0}")]
    ClaimedBy(Arc<str>),
    /// The blob that a result refers to has not been uploaded.
    #[error("blob {0} not found; upload the blob with 'PUT /api/worker/content/{0}' first")]
    NoContent(String),
    /// The journal did not commit the report.
    #[error("failed to record the report")]
    Submit(#[source] SubmitError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

impl From<ResultError> for ReportError {
    fn from(error: ResultError) -> Self {
        Self::Submit(error.into())
    }
}
