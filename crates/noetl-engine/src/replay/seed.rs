//! Starts a fold from a stored replay snapshot.

use serde::{Deserialize, Serialize};

use super::checksum::Checksum;
use super::meta::Map;
use super::state::{ReplayScope, ReplayState};

/// A stored replay state with its identity in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySeed {
    /// ID of the aggregate: `execution/<id>/<projection>`.
    pub aggregate_id: String,
    /// Type of the aggregate: `replay_state`.
    pub aggregate_type: String,
    /// ID of the newest event in the state.
    pub version: i64,
    pub checksum: Checksum,
    pub state: ReplayState,
    #[serde(default)]
    pub meta: Map,
}

/// Description, in a replay state, of the snapshot its fold started from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySnapshot {
    /// ID of the aggregate: `execution/<id>/<projection>`.
    pub aggregate_id: String,
    /// Type of the aggregate: `replay_state`.
    pub aggregate_type: String,
    /// ID of the newest event in the snapshot.
    pub version: i64,
    pub checksum: Checksum,
    pub meta: Map,
}

/// Reason that a fold must not start from a stored state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// The state belongs to another execution.
    #[error("the state is of execution {found}, not of {wanted}")]
    Foreign {
        /// Execution that the caller folds.
        wanted: i64,
        found: i64,
    },
    /// The state was folded with different upcasters, which convert old event formats.
    #[error("the state was folded with other upcasters")]
    Upcasters,
    /// The state's last event is not the one that `version` names.
    #[error("the last event of the state does not match the version")]
    Version,
}

/// Starting point of a fold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayBase {
    /// State folded before. The caller must not fold its events again.
    pub state: Option<ReplayState>,
    /// Origin of `state`, included in the sealed state. It is part of the checksum: without it, a
    /// fold gives the same checksum from any starting point.
    pub snapshot: Option<ReplaySnapshot>,
    /// Digest of the upcasters, which convert old event formats; overrides the one in `state`.
    pub upcaster_registry_digest: Option<String>,
}

impl ReplaySeed {
    /// Checks that a fold of this execution with these upcasters may start here, and returns its
    /// starting point.
    pub fn base(self, execution_id: i64, upcasters: Option<&str>) -> Result<ReplayBase, SeedError> {
        let found = self.state.execution_id;
        if found != execution_id {
            return Err(SeedError::Foreign { wanted: execution_id, found });
        }
        if self.state.upcaster_registry_digest.as_deref() != upcasters {
            return Err(SeedError::Upcasters);
        }
        if self.state.last_event_id != Some(self.version) {
            return Err(SeedError::Version);
        }
        Ok(ReplayBase {
            upcaster_registry_digest: upcasters.map(str::to_owned),
            snapshot: Some(ReplaySnapshot {
                aggregate_id: self.aggregate_id,
                aggregate_type: self.aggregate_type,
                version: self.version,
                checksum: self.checksum,
                meta: self.meta,
            }),
            state: Some(self.state),
        })
    }
}

impl ReplayState {
    /// Creates the initial state of a fold. Identity comes from `scope`, counters continue from
    /// `base`, and checksums are cleared until the state is sealed.
    pub fn begin(scope: ReplayScope, base: ReplayBase) -> Self {
        let known = base.state.unwrap_or_else(|| Self::new(scope.clone()));
        let known_digest = known.upcaster_registry_digest;
        Self {
            tenant_id: scope.tenant_id,
            organization_id: scope.organization_id,
            execution_id: scope.execution_id,
            projection: scope.projection,
            upcaster_registry_digest: base.upcaster_registry_digest.or(known_digest),
            replay_snapshot: base.snapshot,
            checksum: None,
            projection_checksums: None,
            ..known
        }
    }
}
