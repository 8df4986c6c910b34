//! Snapshots of executions for readers elsewhere, brought up to date when they are asked for.

use std::sync::Arc;

use noetl_model::{EventId, ExecutionId, Map, Tenant, Value};
use noetl_store::{Snapshot, Store, StoreError};

use crate::metrics::Metrics;
use crate::replay::Replay;

/// What they are kept as.
const TYPE: &str = "orchestrator_workflow_state";

/// How far an execution's snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projected {
    pub execution: ExecutionId,
    /// The highest event id in it.
    pub version: EventId,
    /// How many events there are.
    pub events: u64,
}

/// Brings snapshots up to date. Cheap to clone.
#[derive(Clone)]
pub struct Projections {
    store: Arc<dyn Store>,
    replay: Replay,
    metrics: Arc<Metrics>,
}

impl Projections {
    pub(crate) fn new(store: Arc<dyn Store>, replay: Replay, metrics: Arc<Metrics>) -> Self {
        Self { store, replay, metrics }
    }

    /// Brings one execution's snapshot up to date; none when it has no events. A newer one stays.
    pub async fn advance(&self, execution: ExecutionId) -> Result<Option<Projected>, StoreError> {
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
        Ok(Some(Projected { execution, version: advanced.version, events: advanced.events }))
    }

    /// Keeps a snapshot unless there is a newer one. One that ends at the same event is older when
    /// it has fewer: events may come late.
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
