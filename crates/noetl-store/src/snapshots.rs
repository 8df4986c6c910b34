//! Snapshots: serialized state, so that folding need not start at the first event.
//!
//! A snapshot is an optimization: without one, the caller folds the event log. One that does not
//! match its checksum therefore counts as missing.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Value};
use sha2::{Digest, Sha256};

use crate::StoreError;

/// Returns the execution of a snapshot with aggregate ID `<execution>` or
/// `execution/<execution>/<name>`. The snapshot is stored with that execution's log and purged with
/// it.
pub(crate) fn execution_of(aggregate: &str) -> Option<ExecutionId> {
    let id = match aggregate.strip_prefix("execution/") {
        Some(rest) => rest.split_once('/')?.0,
        None => aggregate,
    };
    id.parse().ok()
}

/// Serialized state of one aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Version of the state; larger means later.
    pub version: i64,
    /// State as JSON text, stored byte for byte.
    pub body: String,
    /// [`checksum`] of the body. Every store compares it on every read.
    pub checksum: String,
    pub meta: Value,
}

impl Snapshot {
    /// Creates a snapshot with the checksum of its body.
    pub fn new(version: i64, body: String, meta: Value) -> Self {
        Self { version, checksum: checksum(&body), body, meta }
    }

    /// Returns the snapshot if its checksum matches. Every store calls this on every read.
    pub fn whole(self, aggregate_type: &str, aggregate_id: &str) -> Option<Self> {
        if self.checksum == checksum(&self.body) {
            return Some(self);
        }
        let version = self.version;
        tracing::warn!(aggregate_type, aggregate_id, version, "ignoring damaged snapshot");
        None
    }
}

/// Returns the SHA-256 digest of a snapshot's body, in lower-case hexadecimal digits.
pub fn checksum(body: &str) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Snapshots by tenant, aggregate type, and aggregate ID.
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Returns the snapshot of this aggregate, or `None` if its body does not match its checksum.
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError>;

    /// Stores a snapshot unless one of the same or a newer version exists. Returns `true` if it was
    /// stored.
    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError>;

    /// Removes the snapshot of this aggregate, intact or not. Returns `true` if it existed.
    async fn forget(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_sha_256_in_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(""), empty);
    }
}
