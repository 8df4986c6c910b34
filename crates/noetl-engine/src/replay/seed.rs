//! Beginning a fold at a state that was folded before.

use serde::{Deserialize, Serialize};

use super::checksum::Checksum;
use super::meta::Map;
use super::state::{ReplayState, Scope};

/// A kept state, and what it is called where it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seed {
    /// Of what it is: `execution/<id>/<projection>`.
    pub aggregate_id: String,
    /// Of what kind: `replay_state`.
    pub aggregate_type: String,
    /// The newest event it holds.
    pub version: i64,
    pub checksum: Checksum,
    pub state: ReplayState,
    /// What helps to use it.
    #[serde(default)]
    pub meta: Map,
}

/// What a state says about the snapshot its fold began at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplaySnapshot {
    /// Of what it is.
    pub aggregate_id: String,
    /// Of what kind.
    pub aggregate_type: String,
    /// The newest event it holds.
    pub version: i64,
    pub checksum: Checksum,
    /// What helped to use it.
    pub meta: Map,
}

/// A kept state that a fold must not begin at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedError {
    /// It is of another execution.
    #[error("the state is of execution {found}, not of {wanted}")]
    Foreign {
        /// The one that is folded.
        wanted: i64,
        found: i64,
    },
    /// Old shapes of events were brought up to date in another way.
    #[error("the state was folded with other upcasters")]
    Upcasters,
    /// What it is called does not fit what is in it.
    #[error("the state ends at another event than its version says")]
    Version,
}

/// What a fold may begin with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Base {
    /// A state that was folded before. Events up to its last one must not come again.
    pub state: Option<ReplayState>,
    /// What the sealed state says about where `state` came from. It is part of the state's
    /// checksum: without it a fold gives the same checksum wherever it began.
    pub snapshot: Option<ReplaySnapshot>,
    /// What old shapes of events are brought up to date by; wins over what `state` says.
    pub upcaster_registry_digest: Option<String>,
}

impl Seed {
    /// Checks that a fold of this execution with these upcasters may begin here, and says with
    /// what.
    pub fn base(self, execution_id: i64, upcasters: Option<&str>) -> Result<Base, SeedError> {
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
        Ok(Base {
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
    /// The state a fold begins with: who asks is said anew, counters go on, checksums are due
    /// again.
    pub fn begin(scope: Scope, base: Base) -> Self {
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
