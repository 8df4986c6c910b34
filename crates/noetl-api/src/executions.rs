//! Executions: list, read, cancel, finalize, rerun, fork, retry, and answer.

use noetl_model::{Map, Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::events::EventView;
use crate::{Id, Version};

/// Summary of an execution. Start and end times have two names, because clients read either.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionView {
    /// Execution ID, as a number or text.
    pub execution_id: Id,
    /// Catalog entry ID of the playbook.
    pub catalog_id: Id,
    /// Catalog path of the playbook.
    pub path: Option<String>,
    /// Version of the playbook at that path.
    pub version: u32,
    /// Status: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Start time. Same value as `start_time`.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// End time. `null` while the execution runs. Same value as `end_time`.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Start time. Same value as `started_at`.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// End time. `null` while the execution runs. Same value as `completed_at`.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub end_time: Option<Timestamp>,
    /// Duration in seconds. `null` while the execution runs.
    pub duration_seconds: Option<f64>,
    /// Duration as readable text, such as `2m 5s`. `null` while the execution runs.
    #[serde(default)]
    pub duration_human: Option<String>,
    /// Percentage of started step runs that have ended, 0 to 100. At most 99 while the execution
    /// runs, and 100 afterwards.
    #[serde(default)]
    pub progress: u8,
    /// Number of events in the event log.
    pub event_count: u64,
    /// ID of the parent execution. `null` if there is none.
    pub parent_execution_id: Option<Id>,
    /// Failure as one sentence. `null` unless the execution failed.
    pub error: Option<String>,
}

/// Message of `GET /api/executions/stream`: changes of a list of executions since the previous
/// message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListChange {
    /// Executions that are new in the list or have changed.
    pub changed: Vec<ExecutionView>,
    /// IDs of executions that are no longer in the list.
    pub gone: Vec<Id>,
}

/// Response of `GET /api/executions/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ExecutionDetail {
    /// Summary, with its fields at the top level of the response.
    #[serde(flatten)]
    pub summary: ExecutionView,
    /// Workload of the execution: the playbook's workload merged with the payload of the start.
    pub workload: Option<Value>,
    /// Result of the execution. `null` unless it completed.
    pub result: Option<Value>,
    /// Whether older events are omitted because the event log has more than 100,000 events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Page of the event log. Present only if the request asked for a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Pagination>,
    /// Events, oldest first. With `page`, newest first. The last field, so the server can stream
    /// the response.
    pub events: Vec<EventView>,
}

/// Position of a page in the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pagination {
    /// Page number, starting at 1 with the newest events.
    pub page: u64,
    /// Maximum number of events per page.
    pub page_size: u64,
    /// Number of events in the event log that match the request.
    pub total_events: u64,
    /// Number of pages in total.
    pub total_pages: u64,
    /// Whether a page with older events follows.
    pub has_next: bool,
    /// Whether a page with newer events precedes.
    pub has_prev: bool,
}

/// Response of `GET /api/executions/{id}/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusReply {
    /// Execution ID, as a number or text.
    pub execution_id: Id,
    /// Status: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Step that was entered last.
    pub current_step: Option<String>,
    /// Number of steps and step runs by state.
    pub progress: Progress,
    /// Whether the execution was cancelled.
    pub is_cancelled: bool,
    /// Whether the status is terminal: `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub completed: bool,
    /// Whether the status is `FAILED`.
    pub failed: bool,
    /// Names of steps that succeeded, each once, taken from the newest 1,000 events.
    pub completed_steps: Vec<String>,
    /// Failure as one sentence. `null` unless the execution failed.
    pub error: Option<String>,
    /// Start time of the execution.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// End time. `null` while the execution runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub end_time: Option<Timestamp>,
    /// Duration in seconds. `null` while the execution runs.
    pub duration_seconds: Option<f64>,
    /// Duration as readable text, such as `2m 5s`. `null` while the execution runs.
    #[serde(default)]
    pub duration_human: Option<String>,
}

/// Number of steps and step runs of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Number of entered steps, counting each name once.
    pub total_steps: u32,
    /// Number of step runs that succeeded.
    pub completed_steps: u32,
    /// Number of step runs in flight.
    pub running_steps: u32,
    /// Number of step runs that failed.
    pub failed_steps: u32,
}

/// Body of `POST /api/executions/{id}/cancel` and `POST /api/executions/{id}/stop`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequest {
    /// Reason for the cancellation, recorded in the event log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to cancel all descendant executions and list them in the response. Child executions
    /// that the execution waits for are cancelled in any case. If the field is present and the
    /// execution has already ended, `cancel` responds with 400 instead of 422.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cascade: Option<bool>,
}

/// Response of `POST /api/executions/{id}/cancel` and `POST /api/executions/{id}/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelReply {
    /// Execution ID, as a number or text.
    pub execution_id: Id,
    /// `cancelled`. For `stop`, the final status in lower case if the execution had already ended.
    pub status: String,
    /// Outcome as readable text.
    pub message: String,
    /// IDs of the cancelled executions, as text: the execution itself and, with `cascade`, its
    /// descendants.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub cancelled_executions: Vec<Id>,
}

/// Response of `POST /api/executions/{id}/finalize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinalizeReply {
    /// Execution ID, as a number or text.
    pub execution_id: Id,
    /// Final status: `COMPLETED` or `FAILED`.
    pub status: String,
    /// Confirmation as readable text.
    pub message: String,
}

/// Body of `POST /api/executions/{id}/rerun`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RerunRequest {
    /// Values merged over the workload of the original execution. Also accepted as `payload`.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
}

/// Body of `POST /api/executions/{id}/fork`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForkRequest {
    /// Last event to copy, by event ID or sequence number. Default: the newest. Also accepted as
    /// `as_of_event_id`.
    #[serde(default, alias = "as_of_event_id", skip_serializing_if = "Option::is_none")]
    pub at: Option<Id>,
    /// Values merged over the workload of the original execution. Also accepted as `payload`.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
    /// Playbook version to continue with. Default: the version of the original execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// Body of `POST /api/executions/{id}/retry`. Optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryRequest {
    /// Step to return to, before it was last entered. Default: the state before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Values merged over the workload of the original execution. Also accepted as `payload`.
    #[serde(default, alias = "payload")]
    #[schema(value_type = Object)]
    pub workload: Map,
    /// Playbook version to continue with. Default: the version of the original execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// Response of `POST /api/executions/{id}/fork` and `POST /api/executions/{id}/retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkReply {
    /// ID of the new execution, as text.
    pub execution_id: Id,
    /// Always `started`; failures are HTTP errors.
    pub status: String,
    /// Number of commands issued by the start.
    pub commands_generated: usize,
    /// Origin of the new execution.
    pub forked_from: ForkedFrom,
}

/// Origin of a forked execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkedFrom {
    /// ID of the original execution, as text.
    pub execution_id: Id,
    /// ID of the last shared event, as text. `null` if only the workload was copied.
    pub event_id: Option<Id>,
    /// Sequence number of that event in the original execution. 0 if only the workload was copied.
    pub seq: u64,
}

/// Body of `POST /api/executions/cleanup`. Optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CleanupRequest {
    /// Minimum age of the executions to cancel, in minutes since their start. Default: 5.
    pub older_than_minutes: u32,
    /// Whether to list the executions without cancelling them. Default: `false`.
    pub dry_run: bool,
}

impl Default for CleanupRequest {
    fn default() -> Self {
        Self { older_than_minutes: 5, dry_run: false }
    }
}

/// Response of `POST /api/executions/cleanup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CleanupReply {
    /// Number of cancelled executions, at most 500 per request. With `dry_run`, the number that
    /// would be cancelled.
    pub cancelled_count: usize,
    /// Outcome as readable text.
    pub message: String,
    /// IDs of those executions.
    pub execution_ids: Vec<Id>,
}

/// Body of `POST /api/executions/{id}/finalize`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FinalizeRequest {
    /// Final status: `COMPLETED` or `FAILED`, case-insensitive.
    pub status: String,
    /// Failure to record, for status `FAILED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Body of `POST /api/executions/{id}/answers/{command}`. Contains `data` or `error`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct AnswerRequest {
    /// Callback token of the parked command, from its `command.parked` event.
    pub token: String,
    /// Result of the step. Default: `null`.
    #[serde(default)]
    pub data: Value,
    /// Failure of the step. If set, the step fails and `data` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Response of `POST /api/executions/{id}/answers/{command}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AnswerReply {
    /// Execution ID, as a number or text.
    pub execution_id: Id,
    /// ID of the answered command.
    pub command_id: String,
    /// Always `accepted`; failures are HTTP errors.
    pub status: String,
}

/// Response of `GET /api/executions/{id}/cancellation-check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancellationCheck {
    /// Requested execution ID, as a number or text.
    pub execution_id: Id,
    /// Whether the execution was cancelled. `false` for an unknown execution.
    pub is_cancelled: bool,
}
