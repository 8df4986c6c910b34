//! Reads ranges of an event log by event ID, for clients that don't use sequence numbers.

use std::sync::Arc;

use noetl_model::{Event, EventId, ExecutionId, Seq, Tenant};
use noetl_store::{ExecutionRow, StoreError, ViewStore};

/// Result of reading a range of an event log.
#[derive(Debug, Clone)]
pub enum EventRange {
    /// The execution does not exist.
    NoExecution,
    /// The event log has no event with this ID.
    NoEvent,
    /// Events after the given one, oldest first.
    Events(Box<ExecutionRow>, Vec<Event>),
}

/// Reads ranges of event logs. Cheap to clone.
#[derive(Clone)]
pub struct EventPages {
    store: Arc<dyn ViewStore>,
}

impl EventPages {
    pub(crate) fn new(store: Arc<dyn ViewStore>) -> Self {
        Self { store }
    }

    /// Returns up to `limit` events of an execution after the given one, or from the first if
    /// `None`.
    pub async fn after(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<EventRange, StoreError> {
        let Some(row) = self.store.execution(tenant, execution).await? else {
            return Ok(EventRange::NoExecution);
        };
        let place = match after {
            None => Some(Seq(0)),
            Some(event) => self.store.find_event(execution, event).await?,
        };
        let Some(place) = place else { return Ok(EventRange::NoEvent) };
        let events = self.store.read(execution, place, limit).await?;
        Ok(EventRange::Events(Box::new(row), events))
    }
}
