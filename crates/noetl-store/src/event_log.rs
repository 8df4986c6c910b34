//! The log seam: the journal is its only caller that writes.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Event, EventId, ExecutionId, Seq, Tenant};

use crate::{ExecutionRow, StoreError};

/// What one execution adds to its log, with the rows that follow from it.
#[derive(Debug, Clone)]
pub struct Append {
    /// The log's last place this was decided on. The append takes effect only right after it.
    pub expected: Seq,
    /// Given when this creates the execution; `expected` is then [`Seq::START`].
    pub start: Option<Start>,
    /// The new events: `expected + 1`, `expected + 2`, …
    pub events: Vec<Arc<Event>>,
    /// The execution's row after them. Its `version` is the last event's place.
    pub row: ExecutionRow,
}

/// What only the first append of an execution carries.
#[derive(Debug, Clone)]
pub struct Start {
    /// A random key: starting an id again with the same key is a repeat, with another a clash.
    pub key: u64,
    /// Whose execution it is.
    pub tenant: Tenant,
}

/// What became of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is durable.
    Appended,
    /// The execution was started before with the same key; nothing was written.
    Repeated,
    /// The execution id is taken by another start; nothing was written. Mint again.
    Taken,
    /// The log is not at `expected`; nothing was written. Read the tail and decide again.
    Conflict {
        /// Where the log is; [`Seq::START`] when there is no such execution.
        found: Seq,
    },
}

/// The append-only log of every execution.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends a batch in one transaction, and answers for each item in order.
    ///
    /// An item is written whole, with its command and execution rows, or not at all, and never
    /// fails another. When this returns `Ok`, every `Appended` item survives a power cut. When it
    /// returns an error other than [`StoreError::Unknown`], nothing of the batch was kept.
    ///
    /// Command rows follow from the events as `commands::CommandChange::of` says. Several items
    /// may be about one execution; they take effect in order.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Returns up to `limit` events recorded after `after`, oldest first.
    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// The place of the event with this id in this execution's log, among reported events.
    async fn find_reported(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError>;

    /// The largest event id in the store, so that new ids go past a log ahead of the clock.
    async fn newest_id(&self) -> Result<Option<EventId>, StoreError>;
}
