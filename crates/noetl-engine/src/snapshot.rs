//! A state as bytes, so that an execution need not be folded from its first event.
//!
//! A snapshot is a cache: the log is the truth, and a snapshot that cannot be read is as good as
//! none. Its size follows what the state holds, not the length of the log.

mod shape;

use noetl_model::ExecutionId;
use serde::Deserialize;

use crate::execution::Execution;
use crate::values::Limits;
use shape::State;

/// The version of a state that every version of this code can go on with.
const FIRST: u32 = 1;

/// The version of a state with loops, or work of the control plane's own. Code that does not know
/// of them reads the log instead, and leaves such an execution to others.
const VERSION: u32 = 2;

/// A log shorter than this is read faster than a snapshot pays for.
pub const SNAPSHOT_LOG_BYTES_MIN: usize = 64 * 1024;

/// Bytes that are no snapshot of this execution. The caller folds the log instead.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Another version of this code wrote it.
    #[error("the snapshot has version {0}, this is version {VERSION}")]
    Version(u32),
    /// It is of another execution.
    #[error("the snapshot is of execution {0}")]
    OtherExecution(ExecutionId),
    #[error("the snapshot is not readable")]
    Unreadable(#[from] serde_json::Error),
    /// It says something that no state says.
    #[error("the snapshot is not of a state: {0}")]
    Impossible(String),
}

/// Whether a snapshot is due: when the log since the last one is larger than that snapshot was, so
/// that all snapshots together cost no more than the log itself.
pub fn snapshot_is_due(log_bytes_since: usize, last_snapshot_bytes: usize) -> bool {
    log_bytes_since >= SNAPSHOT_LOG_BYTES_MIN && log_bytes_since > last_snapshot_bytes
}

impl Execution {
    /// The state as compact JSON. The same state gives the same bytes.
    pub fn to_snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&State::of(self)).expect("maps with text keys always have a JSON form")
    }

    /// The state these bytes were made of. Folding in the events after its version gives what
    /// folding the whole log gives.
    pub fn from_snapshot(id: ExecutionId, bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_snapshot_within(id, bytes, Limits::default())
    }

    /// The same, holding as much of later values as `limits` say.
    pub fn from_snapshot_within(
        id: ExecutionId,
        bytes: &[u8],
        limits: Limits,
    ) -> Result<Self, SnapshotError> {
        let read = serde_json::from_slice::<State>(bytes);
        // Another version may have another shape: then only this much of it can be read.
        let version = match &read {
            Ok(state) => state.version_written(),
            Err(_) => serde_json::from_slice::<Head>(bytes).map_or(VERSION, |head| head.v),
        };
        if !(FIRST..=VERSION).contains(&version) {
            return Err(SnapshotError::Version(version));
        }
        read?.restored(id, limits)
    }
}

/// What every version's snapshot begins with.
#[derive(Deserialize)]
struct Head {
    v: u32,
}
