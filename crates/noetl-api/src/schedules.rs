//! Schedules: playbooks started on a cron expression, at an interval, or once.

use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/schedules` and `PATCH /api/schedules/{id}`. The keys are those of `spec` in a
/// `kind: Schedule` document. In a `PATCH`, absent keys stay unchanged and `null` removes a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleRequest {
    /// Name of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `playbook`, `version`; `cron` with `timezone`, `every`, or `at`; `missed`, `overlap`,
    /// `enabled`, `payload`, `execution_pool`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub spec: Map,
}

/// A schedule and its last scheduled run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// Schedule ID, as text. Parent of the executions that the schedule starts.
    pub schedule_id: Id,
    /// Name of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Catalog path of the document that defines the schedule. Absent for a schedule created
    /// through the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Catalog path of the playbook to start.
    pub playbook: String,
    /// Version of the playbook. Absent for the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Cron expression of the scheduled runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time zone of the cron expression. Absent without `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Interval between scheduled runs, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// Time of the only scheduled run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Policy for scheduled runs missed while no server was running. `skip`: none are made up.
    /// `one`: one is started. `all`: all are started, one after the other. Default: `one`.
    pub missed: String,
    /// Policy for a scheduled run that is due while an earlier one is still running. `allow`: both
    /// run. `skip`: the new one is skipped. `queue`: the new one waits. `cancel_previous`: the
    /// earlier one is cancelled. Default: `allow`.
    pub overlap: String,
    /// Whether the schedule is active. `false` while it is paused.
    pub enabled: bool,
    /// Payload of the executions that the schedule starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Worker pool for the executions' commands. Default: `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
    /// Time of the next scheduled run. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<String>,
    /// Due time of the last scheduled run. Absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<String>,
    /// Outcome of the last scheduled run: `started`, `skipped_missed`, `skipped_overlap`, or
    /// `failed: …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<String>,
    /// ID of the newest execution that the schedule started, as text. Present only in responses
    /// about a single schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_id: Option<Id>,
    /// Time at which the schedule was created.
    pub created_at: String,
    /// Time at which the schedule last changed.
    pub updated_at: String,
}

/// Response of `GET /api/schedules`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// All schedules in ID order, including those defined by documents.
    pub schedules: Vec<ScheduleView>,
}

/// Response of `DELETE /api/schedules/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDeleted {
    /// ID of the deleted schedule, as text.
    pub schedule_id: Id,
    /// Always `deleted`; failures are HTTP errors.
    pub status: String,
}
