//! Startup errors of a control plane.

use noetl_store::StoreError;

use crate::identity::IdentityError;
use crate::journal::SubmitError;

/// Errors returned by [`Control::open`](crate::ControlPlane::open).
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No machine ID could be acquired.
    #[error(transparent)]
    Identity(IdentityError),
    /// A store operation failed.
    #[error("store is unavailable")]
    Store(#[source] StoreError),
    /// Unfinished executions could not be resumed.
    #[error("unfinished executions could not be resumed")]
    Resume(#[source] SubmitError),
}
