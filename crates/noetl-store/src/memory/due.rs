//! [`TimerStore`] of the in-memory store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, TimerId, Timestamp};

use super::MemoryStore;
use crate::{NewTimer, StoreError, TimerRow, TimerStore};

#[derive(Debug, Default)]
pub(super) struct DueTable(BTreeMap<TimerId, TimerEntry>);

#[derive(Debug)]
struct TimerEntry {
    row: TimerRow,
    ready_at: Timestamp,
}

impl DueTable {
    pub(super) fn add(&mut self, tenant: &Tenant, execution: ExecutionId, new: NewTimer) {
        let NewTimer { id, kind, target, at, payload } = new;
        let tenant = tenant.clone();
        self.0.entry(id).or_insert_with(|| TimerEntry {
            row: TimerRow { id, tenant, execution, kind, target, at, payload, attempts: 0 },
            ready_at: at,
        });
    }

    /// Returns `true` if a timer that this execution sent is undelivered.
    pub(super) fn has_of(&self, execution: ExecutionId) -> bool {
        self.0.values().any(|waiting| waiting.row.execution == execution)
    }

    /// Removes timers and returns the number removed.
    pub(super) fn remove(&mut self, ids: &[TimerId]) -> usize {
        ids.iter().filter(|id| self.0.remove(id).is_some()).count()
    }
}

#[async_trait]
impl TimerStore for MemoryStore {
    async fn claim_due(
        &self,
        limit: usize,
        lease_for: Duration,
    ) -> Result<Vec<TimerRow>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let ready = state.due.0.values().filter(|waiting| waiting.ready_at <= now);
        let mut order: Vec<(Timestamp, TimerId)> =
            ready.map(|waiting| (waiting.ready_at, waiting.row.id)).collect();
        order.sort_unstable();
        let mut taken = Vec::new();
        for (_, id) in order.into_iter().take(limit) {
            if let Some(waiting) = state.due.0.get_mut(&id) {
                waiting.ready_at = now.plus(lease_for);
                waiting.row.attempts += 1;
                taken.push(waiting.row.clone());
            }
        }
        Ok(taken)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state().due.0.values().map(|waiting| waiting.ready_at).min())
    }

    async fn delete_timers(&self, ids: &[TimerId]) -> Result<usize, StoreError> {
        Ok(self.state().due.remove(ids))
    }

    async fn reschedule(&self, id: TimerId, until: Timestamp) -> Result<bool, StoreError> {
        let mut state = self.state();
        Ok(state.due.0.get_mut(&id).map(|waiting| waiting.ready_at = until).is_some())
    }

    async fn with_pending_timer(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let state = self.state();
        let rows = state.due.0.values().map(|waiting| &waiting.row);
        let sent = rows.filter(|row| row.kind == kind && executions.contains(&row.execution));
        let mut senders: Vec<ExecutionId> = sent.map(|row| row.execution).collect();
        senders.sort_unstable();
        senders.dedup();
        Ok(senders)
    }

    async fn timers_of(&self, execution: ExecutionId) -> Result<Vec<TimerRow>, StoreError> {
        let state = self.state();
        let rows = state.due.0.values().map(|waiting| &waiting.row);
        let mut sent: Vec<TimerRow> =
            rows.filter(|row| row.execution == execution).cloned().collect();
        sent.sort_by_key(|row| (row.at, row.id));
        Ok(sent)
    }
}
