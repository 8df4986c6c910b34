//! How a store fails.

use std::sync::Arc;

/// What a driver said, kept for the log and never shown to a caller of the API.
pub type BackendError = Box<dyn std::error::Error + Send + Sync>;

/// A store that could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full or the file cannot grow. Nothing of the call was kept.
    #[error("the database has no room left to write to")]
    Full(#[source] BackendError),
    /// It is not known whether the call took effect: drop what was derived from it and read again.
    #[error("the database went away during a commit")]
    Unknown(#[source] BackendError),
    /// An event with this id is in its log already: somebody else was told the same at the same
    /// time. Nothing of the call was kept; look for it and decide again.
    #[error("an event of the batch is in its log already")]
    EventTaken(#[source] BackendError),
    /// The database does not take what was given, and never will. Nothing of the call was kept.
    #[error("the database refuses what it was given")]
    Refused(#[source] BackendError),
    /// The call did not take effect.
    #[error("the database could not {action}")]
    Backend {
        /// What was attempted, as `read the event log`.
        action: &'static str,
        #[source]
        source: BackendError,
    },
    /// A row that this version cannot read.
    #[error("the database holds a row that is not readable")]
    Row(#[source] BackendError),
    /// One database of several failed, in the way `source` says. The others may be well.
    #[error("the database {name} could not answer")]
    Shard {
        name: Arc<str>,
        /// What became of the call there.
        #[source]
        source: Box<StoreError>,
    },
}

impl StoreError {
    /// A call that did not take effect.
    pub fn backend(action: &'static str, source: impl Into<BackendError>) -> Self {
        Self::Backend { action, source: source.into() }
    }

    /// The same failure, with the name of the database it happened in. The innermost name stays.
    #[must_use]
    pub fn on_shard(self, name: &Arc<str>) -> Self {
        match self {
            Self::Shard { .. } => self,
            bare => Self::Shard { name: name.clone(), source: Box::new(bare) },
        }
    }

    /// The failure itself, whichever database it happened in: what decides how to go on.
    pub fn failure(&self) -> &Self {
        match self {
            Self::Shard { source, .. } => source.failure(),
            bare => bare,
        }
    }

    /// Which database of several failed.
    pub fn shard(&self) -> Option<&str> {
        match self {
            Self::Shard { name, .. } => Some(name),
            _ => None,
        }
    }
}
