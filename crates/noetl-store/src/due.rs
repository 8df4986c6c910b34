//! Due rows: timers, and what one execution asks of another.
//!
//! A row is written in the transaction that decides it, with [`crate::Append::due`], and is there
//! until somebody says it is delivered: in the transaction that acts on it, with
//! [`crate::Append::delivered`], or with [`Due::done`]. Taking a row only lends it out. So it is
//! delivered at least once, whoever dies in between, and whoever acts on it must bear a repeat.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{DueId, ExecutionId, Tenant, Timestamp, Value};

use crate::StoreError;

/// A row to write. Its sender and tenant are those of the append it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDue {
    /// Its id, minted by the sender. Of two rows with one id the first stays as it is.
    pub id: DueId,
    /// What is to be done, in the words of whoever delivers it.
    pub kind: String,
    /// Who it is for: the sender itself for a timer.
    pub target: ExecutionId,
    /// From when on it is to be delivered, by the store's clock.
    pub at: Timestamp,
    /// What goes with it.
    pub payload: Value,
}

/// A row that waits for its delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DueRow {
    pub id: DueId,
    pub tenant: Tenant,
    pub execution: ExecutionId,
    /// What is to be done.
    pub kind: String,
    /// Who it is for.
    pub target: ExecutionId,
    /// From when on it was to be delivered first.
    pub at: Timestamp,
    /// What goes with it.
    pub payload: Value,
    /// How often it was taken.
    pub attempts: u32,
}

/// Takes due rows and gives them back. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait Due: Send + Sync {
    /// Lends out up to `limit` rows that are ready, and counts the attempt: those that have been
    /// ready longest first, at equal times the smaller id first. So a row that cannot be delivered
    /// does not keep later ones waiting.
    ///
    /// A row is ready at its time, and again when it was lent for `lease_for` and neither delivered
    /// nor put off meanwhile. Two callers never get the same row while it is lent.
    async fn take_due(&self, limit: usize, lease_for: Duration) -> Result<Vec<DueRow>, StoreError>;

    /// The earliest instant at which [`Due::take_due`] could return something; it may be past.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Removes rows that are delivered, lent or not. How many there were.
    async fn done(&self, ids: &[DueId]) -> Result<usize, StoreError>;

    /// Makes a row ready at `until`, whoever has it. False when it is gone.
    async fn put_off(&self, id: DueId, until: Timestamp) -> Result<bool, StoreError>;

    /// Those of these executions that sent a row of this kind which still waits, by id.
    async fn have_sent(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError>;

    /// Every row this execution sent and that still waits, by time, at equal times by id.
    async fn due_of(&self, execution: ExecutionId) -> Result<Vec<DueRow>, StoreError>;
}
