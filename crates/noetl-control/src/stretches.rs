//! Stretches of a log by the id of an event, for readers that know nothing of places.

use std::sync::Arc;

use noetl_model::{Event, EventId, ExecutionId, Seq, Tenant};
use noetl_store::{ExecutionRow, Store, StoreError};

/// A part of a log.
#[derive(Debug, Clone)]
pub enum Stretch {
    /// There is no such execution.
    NoExecution,
    /// Its log has no event of that id.
    NoEvent,
    /// What follows, oldest first.
    Events(Box<ExecutionRow>, Vec<Event>),
}

/// The service of stretches. Cheap to clone.
#[derive(Clone)]
pub struct Stretches {
    store: Arc<dyn Store>,
}

impl Stretches {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Up to `limit` events of an execution after the one of this id; from the first when none is
    /// named.
    pub async fn after(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Stretch, StoreError> {
        let Some(row) = self.store.execution(tenant, execution).await? else {
            return Ok(Stretch::NoExecution);
        };
        let place = match after {
            None => Some(Seq(0)),
            Some(event) => self.store.find_event(execution, event).await?,
        };
        let Some(place) = place else { return Ok(Stretch::NoEvent) };
        let events = self.store.read(execution, place, limit).await?;
        Ok(Stretch::Events(Box::new(row), events))
    }
}
