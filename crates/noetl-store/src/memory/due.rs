//! [`Due`] of the in-memory store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{DueId, ExecutionId, Tenant, Timestamp};

use super::MemoryStore;
use crate::{Due, DueRow, NewDue, StoreError};

/// Undelivered timers, by ID.
#[derive(Debug, Default)]
pub(super) struct DueTable(BTreeMap<DueId, Waiting>);

#[derive(Debug)]
struct Waiting {
    row: DueRow,
    ready_at: Timestamp,
}

impl DueTable {
    pub(super) fn add(&mut self, tenant: &Tenant, execution: ExecutionId, new: NewDue) {
        let NewDue { id, kind, target, at, payload } = new;
        let tenant = tenant.clone();
        self.0.entry(id).or_insert_with(|| Waiting {
            row: DueRow { id, tenant, execution, kind, target, at, payload, attempts: 0 },
            ready_at: at,
        });
    }

    /// Returns `true` if a timer that this execution sent is undelivered.
    pub(super) fn has_of(&self, execution: ExecutionId) -> bool {
        self.0.values().any(|waiting| waiting.row.execution == execution)
    }

    /// Removes timers and returns the number removed.
    pub(super) fn remove(&mut self, ids: &[DueId]) -> usize {
        ids.iter().filter(|id| self.0.remove(id).is_some()).count()
    }
}

#[async_trait]
impl Due for MemoryStore {
    async fn take_due(&self, limit: usize, lease_for: Duration) -> Result<Vec<DueRow>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let ready = state.due.0.values().filter(|waiting| waiting.ready_at <= now);
        let mut order: Vec<(Timestamp, DueId)> =
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

    async fn done(&self, ids: &[DueId]) -> Result<usize, StoreError> {
        Ok(self.state().due.remove(ids))
    }

    async fn put_off(&self, id: DueId, until: Timestamp) -> Result<bool, StoreError> {
        let mut state = self.state();
        Ok(state.due.0.get_mut(&id).map(|waiting| waiting.ready_at = until).is_some())
    }

    async fn have_sent(
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

    async fn due_of(&self, execution: ExecutionId) -> Result<Vec<DueRow>, StoreError> {
        let state = self.state();
        let rows = state.due.0.values().map(|waiting| &waiting.row);
        let mut sent: Vec<DueRow> =
            rows.filter(|row| row.execution == execution).cloned().collect();
        sent.sort_by_key(|row| (row.at, row.id));
        Ok(sent)
    }
}
