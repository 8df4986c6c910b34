//! Executions: lists, detail, status, cancelling.

use noetl_model::{Map, Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::events::EventView;
use crate::{Id, Version};

/// One execution as lists show it. Times have both names clients look for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionView {
    /// The execution.
    pub execution_id: Id,
    /// Its catalog entry.
    pub catalog_id: Id,
    /// That entry's path.
    pub path: Option<String>,
    /// That entry's version.
    pub version: u32,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: String,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub end_time: Option<Timestamp>,
    /// How long it took; nothing while it runs.
    pub duration_seconds: Option<f64>,
    /// The same for people, as `2m 5s`.
    #[serde(default)]
    pub duration_human: Option<String>,
    /// How far it is, from 0 to 100: of the visits that began, those that ended.
    #[serde(default)]
    pub progress: u8,
    /// How many events its log holds.
    pub event_count: u64,
    /// The execution that started it.
    pub parent_execution_id: Option<Id>,
    /// Why it failed.
    pub error: Option<String>,
}

/// One message of `GET /api/executions/stream`: what is new in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListChange {
    /// Executions that are new to the list, or stand differently.
    pub changed: Vec<ExecutionView>,
    /// Those that are in it no more.
    pub gone: Vec<Id>,
}

/// The reply of `GET /api/executions/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExecutionDetail {
    /// What lists show of it.
    #[serde(flatten)]
    pub summary: ExecutionView,
    /// What it runs with: the playbook's workload with the payload laid over it.
    pub workload: Option<Value>,
    /// What it came to.
    pub result: Option<Value>,
    /// Whether older events are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Which stretch of its log this is, when one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
    /// Its events, oldest first; with `page`, newest first. The last field, so that a reply can be
    /// streamed.
    pub events: Vec<EventView>,
}

/// Which stretch of a log a reply holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pagination {
    /// The page, from 1, counted from the newest event.
    pub page: u64,
    /// Events on a page.
    pub page_size: u64,
    /// Events in the log.
    pub total_events: u64,
    /// Pages in all.
    pub total_pages: u64,
    /// Whether older events follow.
    pub has_next: bool,
    /// Whether newer events precede.
    pub has_prev: bool,
}

/// The reply of `GET /api/executions/{id}/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusReply {
    /// The execution.
    pub execution_id: Id,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: String,
    /// The step that was entered last.
    pub current_step: Option<String>,
    /// How far it is.
    pub progress: Progress,
    /// Whether it was stopped.
    pub is_cancelled: bool,
    /// `true` once the status is terminal: `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub completed: bool,
    /// `true` if the status is `FAILED`.
    pub failed: bool,
    /// Steps that ended well, each name once, of the newest part of the log.
    pub completed_steps: Vec<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub end_time: Option<Timestamp>,
    /// How long it took; nothing while it runs.
    pub duration_seconds: Option<f64>,
    /// The same for people, as `2m 5s`.
    #[serde(default)]
    pub duration_human: Option<String>,
}

/// How far an execution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Steps entered, counting each name once.
    pub total_steps: u32,
    /// Visits that ended well.
    pub completed_steps: u32,
    /// Visits under way.
    pub running_steps: u32,
    /// Visits that ended badly.
    pub failed_steps: u32,
}

/// The body of `POST /api/executions/{id}/cancel`; it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequest {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to stop and name everything below it, too. What it started and waits for is stopped
    /// in any case. A request that contains it gets 400 instead of 422 if the execution is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cascade: Option<bool>,
}

/// The reply to a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelReply {
    /// The execution.
    pub execution_id: Id,
    /// `cancelled`; of one that was over already, how it ended.
    pub status: String,
    /// One sentence for people.
    pub message: String,
    /// What was stopped, as text: the execution, and with `cascade` those below it.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub cancelled_executions: Vec<Id>,
}

/// The reply to a finalize.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinalizeReply {
    /// The execution.
    pub execution_id: Id,
    /// `COMPLETED` or `FAILED`.
    pub status: String,
    /// One sentence for people.
    pub message: String,
}

/// The body of `POST /api/executions/{id}/rerun`; it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RerunRequest {
    /// Laid over the workload it had.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
}

/// The body of `POST /api/executions/{id}/fork`; it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForkRequest {
    /// The last event to take over, by its id or by its place in the log; the newest when absent.
    #[serde(default, alias = "as_of_event_id", skip_serializing_if = "Option::is_none")]
    pub at: Option<Id>,
    /// Laid over the workload it had.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
    /// The version of the playbook to go on with; the one it had when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// The body of `POST /api/executions/{id}/retry`; it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryRequest {
    /// The step to go back to, as it was entered last; what failed when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Laid over the workload it had.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
    /// The version of the playbook to go on with; the one it had when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// An execution that begins with the past of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkReply {
    /// The new execution, as text.
    pub execution_id: Id,
    /// `started`.
    pub status: String,
    /// How many commands were handed out.
    pub commands_generated: usize,
    /// What it has from the other.
    pub forked_from: ForkedFrom,
}

/// What an execution has from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkedFrom {
    /// The other execution, as text.
    pub execution_id: Id,
    /// The last event they share, as text; nothing when only the workload was taken over.
    pub event_id: Option<Id>,
    /// The place of that event in the log of the other.
    pub seq: u64,
}

/// The body of `POST /api/executions/cleanup`; it may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CleanupRequest {
    /// How long ago they began, in minutes.
    pub older_than_minutes: u32,
    /// Whether only to say what would be stopped.
    pub dry_run: bool,
}

impl Default for CleanupRequest {
    fn default() -> Self {
        Self { older_than_minutes: 5, dry_run: false }
    }
}

/// The reply to a clean-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CleanupReply {
    /// How many were stopped, or would be.
    pub cancelled_count: usize,
    /// One sentence for people.
    pub message: String,
    /// Which.
    pub execution_ids: Vec<Id>,
}

/// The body of `POST /api/executions/{id}/finalize`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FinalizeRequest {
    /// `COMPLETED` or `FAILED`.
    pub status: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The body of `POST /api/executions/{id}/answers/{command}`: data, or why there is none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct AnswerRequest {
    /// The token the command was parked with.
    pub token: String,
    /// What the step is to answer; null when left out.
    #[serde(default)]
    pub data: Value,
    /// Why it fails instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The reply to an answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AnswerReply {
    /// The execution.
    pub execution_id: Id,
    /// The command.
    pub command_id: String,
    /// `accepted`.
    pub status: String,
}

/// The reply of `GET /api/executions/{id}/cancellation-check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancellationCheck {
    /// The execution.
    pub execution_id: Id,
    /// Whether it was stopped.
    pub is_cancelled: bool,
}
