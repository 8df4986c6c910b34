//! How a start fails.

use noetl_store::StoreError;

use crate::identity::IdentityError;
use crate::journal::SubmitError;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process has no number of its own.
    #[error(transparent)]
    Identity(IdentityError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// Unfinished executions could not go on.
    #[error("unfinished executions could not be resumed")]
    Resume(#[source] SubmitError),
}
