//! Timers and messages from one execution to another.
//!
//! A timer is written in the transaction of the decision, with [`crate::Append::due`], and exists
//! until it is delivered: it is deleted in the transaction that acts on it, with
//! [`crate::Append::delivered`], or with [`TimerStore::done`]. Claiming a timer only leases it. A timer
//! therefore fires at least once, even if a process crashes in between, and its handler must
//! tolerate repeats.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, TimerId, Timestamp, Value};

use crate::StoreError;

/// A timer to write. Its sender and tenant are those of the append that contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTimer {
    /// Timer ID, minted by the sender. If the ID exists, the existing timer is unchanged.
    pub id: TimerId,
    /// Discriminator, such as `wake` or `start_child`; the store does not interpret it.
    pub kind: String,
    /// Execution the timer fires on; the sender itself for a timer in the narrow sense.
    pub target: ExecutionId,
    /// Earliest delivery time, by the store's clock.
    pub at: Timestamp,
    pub payload: Value,
}

/// A timer that has not been delivered.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerRow {
    pub id: TimerId,
    pub tenant: Tenant,
    pub execution: ExecutionId,
    /// Discriminator, such as `wake` or `start_child`.
    pub kind: String,
    /// Execution the timer fires on.
    pub target: ExecutionId,
    /// Original due time. Rescheduling doesn't change it.
    pub at: Timestamp,
    pub payload: Value,
    /// Number of times the timer was claimed for delivery.
    pub attempts: u32,
}

/// Claims and reschedules timers. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait TimerStore: Send + Sync {
    /// Claims up to `limit` timers that are ready and counts the attempt. Those that have been
    /// ready longest come first, then by ascending ID, so a timer that cannot be delivered does not
    /// block later ones.
    ///
    /// A timer is ready at its due time, and again when `lease_for` has passed since it was claimed
    /// without delivery or rescheduling. Two callers never claim the same timer while its lease
    /// lasts.
    async fn claim_due(
        &self,
        limit: usize,
        lease_for: Duration,
    ) -> Result<Vec<TimerRow>, StoreError>;

    /// Returns the earliest time at which [`TimerStore::claim_due`] could return a timer, which may be in
    /// the past.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Deletes timers that are delivered, whether claimed or not. Returns the number deleted.
    async fn delete_timers(&self, ids: &[TimerId]) -> Result<usize, StoreError>;

    /// Makes a timer ready at `until`, even if it is claimed. Returns `false` if it no longer
    /// exists.
    async fn reschedule(&self, id: TimerId, until: Timestamp) -> Result<bool, StoreError>;

    /// Returns those of these executions that have an undelivered timer of this kind, by ID.
    async fn with_pending_timer(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError>;

    /// Returns the undelivered timers that this execution sent, by due time, then by ID.
    async fn timers_of(&self, execution: ExecutionId) -> Result<Vec<TimerRow>, StoreError>;
}
