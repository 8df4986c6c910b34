//! Schedules: times at which to start playbooks.
//!
//! The store has no calendar: the caller that runs a schedule computes its next run. A scheduled
//! run has four idempotent steps, which any process may repeat: find the schedule ready, fix the ID
//! of its execution, start that execution, and advance the schedule. A crash in between leaves the
//! schedule ready with the execution ID fixed, and starting that ID again is a repeat. No run is
//! lost, and none starts twice.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp, Value};

use crate::StoreError;

/// User-defined part of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    pub id: ScheduleId,
    pub path: String,
    /// Version of the playbook; the newest if `None`.
    pub version: Option<u32>,
    /// Cron expression of the run times; `None` for an interval or a single run.
    pub cron: Option<String>,
    /// Interval between two runs, in seconds.
    pub interval_seconds: Option<u32>,
    /// Whether the schedule is enabled.
    pub is_enabled: bool,
    /// Time zone of the cron expression.
    pub timezone: Option<String>,
    pub payload: Option<Value>,
    pub meta: Option<Value>,
    /// Time of the next run; never if `None`.
    pub next_run_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub tenant: Tenant,
    /// User-defined part, with the time of the next run.
    pub schedule: NewSchedule,
    /// ID of the next run's execution, once fixed.
    pub run: Option<ExecutionId>,
    /// Due time of the last run.
    pub last_run_at: Option<Timestamp>,
    /// Outcome of the last start.
    pub last_status: Option<String>,
    /// Time of the first put, by the store's clock.
    pub created_at: Timestamp,
    /// Time of the last change, by the store's clock.
    pub updated_at: Timestamp,
}

#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Adds a schedule, or replaces the user-defined part of a known one. The last run is
    /// unchanged. A fixed execution ID is retained if the next run is the same, and dropped
    /// otherwise. An ID that belongs to another tenant is a bug of the caller, and an error.
    async fn put_schedule(
        &self,
        tenant: &Tenant,
        schedule: NewSchedule,
    ) -> Result<ScheduleRow, StoreError>;

    /// Returns a schedule, or `None` if it belongs to another tenant.
    async fn schedule(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
    ) -> Result<Option<ScheduleRow>, StoreError>;

    /// Returns all schedules of a tenant, in ID order.
    async fn schedules(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, StoreError>;

    /// Returns enabled schedules of all tenants whose next run is due by the store's clock, the
    /// longest due first, then by ascending ID.
    async fn ready_schedules(&self, limit: usize) -> Result<Vec<ScheduleRow>, StoreError>;

    /// Returns the earliest due time of an enabled schedule, past or future.
    async fn next_schedule(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Fixes the execution ID of the run due at `due` and returns it. All callers get the ID of the
    /// first one. Returns `None` if the schedule no longer exists, is disabled, or has another next
    /// run.
    async fn fix_run(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Result<Option<ExecutionId>, StoreError>;

    /// Advances a schedule from the run due at `due` to its `next` one, which is later. Returns
    /// `false` without effect if its next run is another: a concurrent caller advanced it.
    async fn move_on(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<bool, StoreError>;

    /// Removes a schedule. Returns `false` if it is unknown.
    async fn remove_schedule(&self, tenant: &Tenant, id: ScheduleId) -> Result<bool, StoreError>;
}
