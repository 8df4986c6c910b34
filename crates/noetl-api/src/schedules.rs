//! Schedules: playbooks that are started by the clock.

use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/schedules`, and of `PATCH /api/schedules/{id}`, where what is absent stays
/// and what is null goes. Its words are those of a document's `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleRequest {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `playbook`, `version`; `cron` with `timezone`, `every` or `at`; `missed`, `overlap`, `enabled`,
    /// `payload`, `execution_pool`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub spec: Map,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// Its id, as text: the parent of what it starts.
    pub schedule_id: Id,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path of the document that makes it; none of one that callers made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The playbook it starts.
    pub playbook: String,
    /// That playbook's version; the newest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// When it runs, as a cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Whose clocks that is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// When it runs, as the seconds between two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// When it runs, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What happens to runs nobody was there for.
    pub missed: String,
    /// What happens while an earlier run still runs.
    pub overlap: String,
    /// Whether it runs at all.
    pub enabled: bool,
    /// What executions are started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Which pool runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
    /// When it runs next; never any more when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<String>,
    /// When it ran last: the time that run was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<String>,
    /// What became of that: `started`, `skipped_missed`, `skipped_overlap` or `failed: …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<String>,
    /// The newest execution it started, as text; in answers about one schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_id: Option<Id>,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// The reply of `GET /api/schedules`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleList {
    /// All of them, in the order of their ids.
    pub schedules: Vec<ScheduleView>,
}

/// The reply of `DELETE /api/schedules/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDeleted {
    /// The schedule that is no more, as text.
    pub schedule_id: Id,
    /// `deleted`.
    pub status: String,
}
