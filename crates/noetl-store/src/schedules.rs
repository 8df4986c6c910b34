//! Schedules: when a playbook is to be started next.
//!
//! The store knows no calendar: whoever runs a schedule says when its next run is. A run goes in
//! three steps, each of which may be repeated by anybody: find it ready, fix the execution it will
//! be, start that execution, and move the schedule on. A crash in between leaves the schedule ready
//! with its execution fixed, and starting that one again is a repeat. So no run is lost and none
//! is started twice.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp, Value};

use crate::StoreError;

/// What a user says of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    pub id: ScheduleId,
    /// The path of the playbook.
    pub path: String,
    /// The version of the playbook; the newest when none is given.
    pub version: Option<u32>,
    /// When it runs, as a cron expression.
    pub cron: Option<String>,
    /// When it runs, as the seconds between two runs.
    pub interval_seconds: Option<u32>,
    /// Whether it runs at all.
    pub is_enabled: bool,
    /// The time zone of the cron expression.
    pub timezone: Option<String>,
    /// What the executions are started with.
    pub payload: Option<Value>,
    /// What helps to read it.
    pub meta: Option<Value>,
    /// When it runs next; never when none is given.
    pub next_run_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleRow {
    pub tenant: Tenant,
    /// What was said of it, with its next run.
    pub schedule: NewSchedule,
    /// The execution the next run will be, once it is fixed.
    pub run: Option<ExecutionId>,
    /// When it ran last: the time that run was due.
    pub last_run_at: Option<Timestamp>,
    /// What became of the last start.
    pub last_status: Option<String>,
    /// When it was first put, by the store's clock.
    pub created_at: Timestamp,
    /// When it last changed, by the store's clock.
    pub updated_at: Timestamp,
}

/// Schedules of playbooks.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Adds a schedule, or replaces what is said of a known one. Its last run stays. An execution
    /// that is fixed stays while the next run is the same, and else is dropped. An id that another
    /// tenant has is a bug of the caller, and an error.
    async fn put_schedule(
        &self,
        tenant: &Tenant,
        schedule: NewSchedule,
    ) -> Result<ScheduleRow, StoreError>;

    /// One schedule; none for another tenant's.
    async fn schedule(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
    ) -> Result<Option<ScheduleRow>, StoreError>;

    /// Every schedule of a tenant, in id order.
    async fn schedules(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, StoreError>;

    /// Schedules of all tenants that are enabled and whose next run is due by the store's clock,
    /// the longest due first, at equal times the smaller id first.
    async fn ready_schedules(&self, limit: usize) -> Result<Vec<ScheduleRow>, StoreError>;

    /// When the first enabled schedule is due, whether that is past or to come.
    async fn next_schedule(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Fixes the execution that the run due at `due` will be, and returns it: the first caller's,
    /// for everybody. None when the schedule is gone, not enabled, or its next run is another.
    async fn fix_run(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Result<Option<ExecutionId>, StoreError>;

    /// Moves a schedule on from the run due at `due` to its `next` one, which is later. False, and no change, when
    /// its next run is another: somebody else moved it on.
    async fn move_on(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<bool, StoreError>;

    /// Removes a schedule. False when it is unknown.
    async fn remove_schedule(&self, tenant: &Tenant, id: ScheduleId) -> Result<bool, StoreError>;
}
