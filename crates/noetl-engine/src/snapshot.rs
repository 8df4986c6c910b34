//! Serializes state, so that folding an execution need not start at its first event.
//!
//! A snapshot is a cache: the event log is authoritative, and a snapshot that cannot be read is
//! equivalent to none. Its size depends on the values stored in the state, not on the length of the
//! event log.

mod shape;

use noetl_model::ExecutionId;
use serde::Deserialize;

use crate::execution::Execution;
use crate::values::ValueLimits;
use shape::StateShape;

/// Version of a snapshot that every release can restore.
const FIRST: u32 = 1;

/// Version of a snapshot with loops or control-plane tools. A release that does not support them
/// reads the event log instead, and leaves such an execution to other processes.
const VERSION: u32 = 2;

/// Minimum size of an event log, in bytes, for which a snapshot pays off.
pub const SNAPSHOT_LOG_BYTES_MIN: usize = 64 * 1024;

/// Reason that bytes cannot be restored. The caller folds the event log instead.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A release with an unsupported snapshot version wrote the bytes.
    #[error("the snapshot has version {0}, this is version {VERSION}")]
    Version(u32),
    /// The snapshot belongs to another execution.
    #[error("the snapshot is of execution {0}")]
    OtherExecution(ExecutionId),
    #[error("the snapshot is not readable")]
    Unreadable(#[from] serde_json::Error),
    /// The snapshot contains a value that no state can have.
    #[error("the snapshot is not of a state: {0}")]
    Impossible(String),
}

/// Returns `true` if a snapshot is due: the events since the last one are larger than that snapshot
/// and than [`SNAPSHOT_LOG_BYTES_MIN`]. All snapshots together thus cost no more than the event
/// log.
pub fn snapshot_is_due(log_bytes_since: usize, last_snapshot_bytes: usize) -> bool {
    log_bytes_since >= SNAPSHOT_LOG_BYTES_MIN && log_bytes_since > last_snapshot_bytes
}

impl Execution {
    /// Serializes the state to compact JSON. Equal states produce equal bytes.
    pub fn to_snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&StateShape::from_state(self))
            .expect("maps with text keys always have a JSON form")
    }

    /// Restores a state from a snapshot. Folding the events after its version gives the same state
    /// as folding the whole event log.
    pub fn from_snapshot(id: ExecutionId, bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_snapshot_within(id, bytes, ValueLimits::default())
    }

    /// Like [`from_snapshot`](Self::from_snapshot), but stores later values inline up to `limits`.
    pub fn from_snapshot_within(
        id: ExecutionId,
        bytes: &[u8],
        limits: ValueLimits,
    ) -> Result<Self, SnapshotError> {
        let read = serde_json::from_slice::<StateShape>(bytes);
        // Another version may have another shape; then only its header can be read.
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

/// Header of a snapshot, common to all versions.
#[derive(Deserialize)]
struct Head {
    v: u32,
}
