//! Advances snapshots of executions for external consumers, on request.

use std::sync::Arc;

use noetl_journal::Metrics;
use noetl_model::{EventId, ExecutionId, Map, Tenant, Value};
use noetl_store::{Snapshot, StoreError, ViewStore};

use crate::replay::Replay;

/// Aggregate type of the snapshots.
const TYPE: &str = "orchestrator_workflow_state";

/// Position of an execution's snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectionProgress {
    pub execution: ExecutionId,
    /// Highest event ID in the snapshot.
    pub version: EventId,
    /// Number of events in the snapshot.
    pub events: u64,
}

/// Advances snapshots. Cheap to clone.
#[derive(Clone)]
pub struct Projections {
    store: Arc<dyn ViewStore>,
    replay: Replay,
    metrics: Arc<Metrics>,
}

impl Projections {
    pub(crate) fn new(store: Arc<dyn ViewStore>, replay: Replay, metrics: Arc<Metrics>) -> Self {
        Self { store, replay, metrics }
    }

    /// Advances the snapshot of an execution to its latest event. Returns `None` if the execution
    /// has no events. Does not overwrite a newer snapshot.
    pub async fn advance(
        &self,
        execution: ExecutionId,
    ) -> Result<Option<ProjectionProgress>, StoreError> {
        let Some(advanced) = self.replay.advance(execution).await? else { return Ok(None) };
        let tenant = self.store.tenant_of(execution).await?.unwrap_or_default();
        let body = serde_json::to_string(&advanced.state);
        let body = body.map_err(|error| StoreError::backend("write a snapshot", error))?;
        let meta = Map::from_iter([
            ("applied_count".to_owned(), Value::from(advanced.events)),
            ("routing_meta".to_owned(), advanced.start_meta.unwrap_or(Value::Null)),
        ]);
        let snapshot = Snapshot::new(advanced.version.get(), body, Value::Object(meta));
        self.save(&tenant, &execution.to_string(), snapshot).await?;
        self.metrics.projections_advanced.inc();
        Ok(Some(ProjectionProgress {
            execution,
            version: advanced.version,
            events: advanced.events,
        }))
    }

    /// Stores a snapshot unless a newer one exists. Of two that end at the same event, the one with
    /// fewer events is older, because events may arrive late.
    async fn save(&self, tenant: &Tenant, id: &str, new: Snapshot) -> Result<(), StoreError> {
        if self.store.save(tenant, TYPE, id, new.clone()).await? {
            return Ok(());
        }
        let count = |snapshot: &Snapshot| snapshot.meta["applied_count"].as_u64().unwrap_or(0);
        let known = self.store.snapshot(tenant, TYPE, id).await?;
        let is_stale =
            |known: &Snapshot| known.version == new.version && count(known) < count(&new);
        if known.is_none_or(|known| is_stale(&known)) {
            self.store.forget(tenant, TYPE, id).await?;
            self.store.save(tenant, TYPE, id, new).await?;
        }
        Ok(())
    }
}
