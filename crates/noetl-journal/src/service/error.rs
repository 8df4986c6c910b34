//! Errors of opening a control plane.

use noetl_identity::IdentityError;
use noetl_store::StoreError;

use crate::journal::SubmitError;

/// Errors of opening a control plane.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No machine ID could be acquired.
    #[error(transparent)]
    Identity(IdentityError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
    /// Unfinished executions could not be resumed.
    #[error("unfinished executions could not be resumed")]
    Resume(#[source] SubmitError),
}
