//! Snapshots: folded state that spares reading a log from its beginning.
//!
//! A snapshot is an optimisation: whoever finds none folds the log. So one that does not match its
//! checksum counts as none.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Value};
use sha2::{Digest, Sha256};

use crate::StoreError;

/// The execution a snapshot is about: `<execution>`, or `execution/<execution>/<name>`. It goes
/// with that execution and is kept where its log is.
pub(crate) fn execution_of(aggregate: &str) -> Option<ExecutionId> {
    let id = match aggregate.strip_prefix("execution/") {
        Some(rest) => rest.split_once('/')?.0,
        None => aggregate,
    };
    id.parse().ok()
}

/// The folded state of one aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// How far it was folded: larger means later.
    pub version: i64,
    /// The state as JSON text. It is kept to the byte.
    pub body: String,
    /// [`checksum`] of the body.
    pub checksum: String,
    /// What helps to use it.
    pub meta: Value,
}

impl Snapshot {
    /// A snapshot with the checksum of its body.
    pub fn new(version: i64, body: String, meta: Value) -> Self {
        Self { version, checksum: checksum(&body), body, meta }
    }

    /// The snapshot when it is whole; every store asks on every read.
    pub fn whole(self, aggregate_type: &str, aggregate_id: &str) -> Option<Self> {
        if self.checksum == checksum(&self.body) {
            return Some(self);
        }
        let version = self.version;
        tracing::warn!(aggregate_type, aggregate_id, version, "a damaged snapshot is passed over");
        None
    }
}

/// SHA-256 of a snapshot's body, in lower-case hexadecimal digits.
pub fn checksum(body: &str) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Snapshots by tenant, type and id of what they are of.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// The snapshot of this aggregate; none when its body does not match its checksum.
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError>;

    /// Keeps a snapshot unless there is one as new or newer. Whether it was kept.
    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError>;

    /// Drops the snapshot of this aggregate, whole or not. Whether there was one.
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
