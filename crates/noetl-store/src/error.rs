//! Errors of store calls. Each variant says whether the call had an effect.

use std::sync::Arc;

/// Driver error, written to the server log and never returned to an API client.
pub type BackendError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a store call.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full or the file cannot grow. The call had no effect.
    #[error("the database has no room left to write to")]
    Full(#[source] BackendError),
    /// The outcome of the commit is unknown. Discard all state derived from it and read again.
    #[error("the database went away during a commit")]
    Unknown(#[source] BackendError),
    /// The log already contains an event with this ID, because another process recorded the same
    /// report concurrently. The call had no effect; look up the event and decide again.
    #[error("the log already contains an event of the batch")]
    EventTaken(#[source] BackendError),
    /// The database rejects the input permanently. The call had no effect.
    #[error("database rejected the value")]
    Refused(#[source] BackendError),
    /// The call failed without effect.
    #[error("the database could not {action}")]
    Backend {
        /// Attempted operation, such as `read the event log`.
        action: &'static str,
        #[source]
        source: BackendError,
    },
    /// This release cannot decode a row.
    #[error("the database holds a row that is not readable")]
    Row(#[source] BackendError),
    /// A database of several failed, as `source` describes. The others may be available.
    #[error("database {name} is unavailable")]
    Shard {
        name: Arc<str>,
        /// Failure of the call in that database.
        #[source]
        source: Box<StoreError>,
    },
}

impl StoreError {
    /// Creates the error of a call that had no effect.
    pub fn backend(action: &'static str, source: impl Into<BackendError>) -> Self {
        Self::Backend { action, source: source.into() }
    }

    /// Adds the name of the database in which the failure happened. An existing name is retained.
    #[must_use]
    pub fn on_shard(self, name: &Arc<str>) -> Self {
        match self {
            Self::Shard { .. } => self,
            bare => Self::Shard { name: name.clone(), source: Box::new(bare) },
        }
    }

    /// Returns the failure without the database name. Use it to decide how to proceed.
    pub fn failure(&self) -> &Self {
        match self {
            Self::Shard { source, .. } => source.failure(),
            bare => bare,
        }
    }

    /// Returns the name of the database that failed, if there are several.
    pub fn shard(&self) -> Option<&str> {
        match self {
            Self::Shard { name, .. } => Some(name),
            _ => None,
        }
    }
}
