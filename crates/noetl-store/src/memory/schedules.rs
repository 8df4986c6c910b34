//! [`ScheduleStore`] of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp};

use super::MemoryStore;
use crate::{NewSchedule, ScheduleRow, ScheduleStore, StoreError};

#[derive(Debug, Default)]
pub(super) struct ScheduleTable(BTreeMap<ScheduleId, ScheduleRow>);

impl ScheduleTable {
    /// Returns the schedule if it belongs to this tenant and its next run is due at `due`.
    fn due_at(
        &mut self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
    ) -> Option<&mut ScheduleRow> {
        let row = self.0.get_mut(&id).filter(|row| row.tenant == *tenant)?;
        (row.schedule.next_run_at == Some(due)).then_some(row)
    }
}

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn put_schedule(
        &self,
        tenant: &Tenant,
        schedule: NewSchedule,
    ) -> Result<ScheduleRow, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let known = state.schedules.0.get(&schedule.id);
        if known.is_some_and(|known| known.tenant != *tenant) {
            let taken = format!("schedule {} exists already", schedule.id);
            return Err(StoreError::backend("put a schedule", taken));
        }
        let same_run = known.filter(|row| row.schedule.next_run_at == schedule.next_run_at);
        let row = ScheduleRow {
            tenant: tenant.clone(),
            run: same_run.and_then(|row| row.run),
            last_run_at: known.and_then(|row| row.last_run_at),
            last_status: known.and_then(|row| row.last_status.clone()),
            created_at: known.map_or(now, |row| row.created_at),
            updated_at: now,
            schedule,
        };
        state.schedules.0.insert(row.schedule.id, row.clone());
        Ok(row)
    }

    async fn schedule(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
    ) -> Result<Option<ScheduleRow>, StoreError> {
        let state = self.state();
        Ok(state.schedules.0.get(&id).filter(|row| row.tenant == *tenant).cloned())
    }

    async fn schedules(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, StoreError> {
        let state = self.state();
        Ok(state.schedules.0.values().filter(|row| row.tenant == *tenant).cloned().collect())
    }

    async fn ready_schedules(&self, limit: usize) -> Result<Vec<ScheduleRow>, StoreError> {
        let state = self.state();
        let now = self.clock.now();
        let is_due = |row: &&ScheduleRow| row.schedule.next_run_at.is_some_and(|at| at <= now);
        let enabled = state.schedules.0.values().filter(|row| row.schedule.is_enabled);
        let mut ready: Vec<ScheduleRow> = enabled.filter(is_due).cloned().collect();
        ready.sort_by_key(|row| (row.schedule.next_run_at, row.schedule.id));
        ready.truncate(limit);
        Ok(ready)
    }

    async fn next_schedule(&self) -> Result<Option<Timestamp>, StoreError> {
        let state = self.state();
        let enabled = state.schedules.0.values().filter(|row| row.schedule.is_enabled);
        Ok(enabled.filter_map(|row| row.schedule.next_run_at).min())
    }

    async fn fix_run(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Result<Option<ExecutionId>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let row = state.schedules.due_at(tenant, id, due).filter(|row| row.schedule.is_enabled);
        Ok(row.map(|row| {
            if row.run.is_none() {
                row.updated_at = now;
            }
            *row.run.get_or_insert(execution)
        }))
    }

    async fn move_on(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let Some(row) = state.schedules.due_at(tenant, id, due) else {
            return Ok(false);
        };
        row.schedule.next_run_at = next;
        row.run = None;
        row.last_run_at = Some(due);
        row.last_status = Some(status.to_owned());
        row.updated_at = now;
        Ok(true)
    }

    async fn remove_schedule(&self, tenant: &Tenant, id: ScheduleId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_own = state.schedules.0.get(&id).is_some_and(|row| row.tenant == *tenant);
        Ok(is_own && state.schedules.0.remove(&id).is_some())
    }
}
