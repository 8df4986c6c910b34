//! Executions and events in the format of the published terminal: every ID is text.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Response of `GET /api/ehdb`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbIndex {
    /// Always `index`: names the type of the response.
    pub action: String,
    /// Always `eventlog`: names the source of the data.
    pub tier: String,
    /// Paths of the available endpoints.
    pub routes: Vec<String>,
}

/// Response of `GET /api/ehdb/executions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbExecutions {
    /// Always `executions`: names the type of the response.
    pub action: String,
    /// Always `eventlog`: names the source of the data.
    pub tier: String,
    /// Number of executions in this response.
    pub returned: usize,
    /// ID of the last execution in this response if more may follow, otherwise `null`.
    pub next_cursor: Option<String>,
    /// Executions, newest start first.
    pub executions: Vec<EhdbExecution>,
}

/// State of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbExecution {
    /// ID of the execution, as text.
    pub execution_id: Id,
    /// Status: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Whether the status is final.
    pub terminal: bool,
    /// Step that was entered last.
    pub current_node: Option<String>,
    /// Catalog path of the playbook.
    pub path: String,
    /// Catalog entry ID of the playbook, as text.
    pub catalog_id: Id,
    /// ID of the parent execution, as text.
    pub parent_execution_id: Option<Id>,
    /// Number of events in the event log.
    pub event_count: u64,
    /// Start time of the execution.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// End time. `null` while the execution runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
}

/// Response of `GET /api/ehdb/executions/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbState {
    /// Always `execution`: names the type of the response.
    pub action: String,
    /// Always `eventlog`: names the source of the data.
    pub tier: String,
    /// Requested execution ID, as text.
    pub execution_id: Id,
    /// Whether the execution exists.
    pub exists: bool,
    /// State of the execution. `null` if it doesn't exist.
    pub state: Option<EhdbExecution>,
}

/// Response of `GET /api/ehdb/executions/{id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbEvents {
    /// Always `events`: names the type of the response.
    pub action: String,
    /// Always `eventlog`: names the source of the data.
    pub tier: String,
    /// Requested execution ID, as text.
    pub execution_id: Id,
    /// Whether the execution exists.
    pub exists: bool,
    /// Number of events in this response.
    pub returned: usize,
    /// Value of `after` for the next request if more events may follow, otherwise `null`.
    pub next_cursor: Option<String>,
    /// Events of the execution, oldest first.
    pub events: Vec<EhdbEvent>,
}

/// An event of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbEvent {
    /// ID of the event, as text.
    pub event_id: Id,
    /// Event type, such as `step.enter`. `null` if an imported event has none.
    pub event_type: Option<String>,
    /// Step name, or the catalog path for `playbook_started`.
    pub node_name: Option<String>,
    /// Status text of the event.
    pub status: Option<String>,
    /// Time of the event.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
