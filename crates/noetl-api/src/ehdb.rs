//! Executions and their events as the published terminal reads them: every id is text.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbIndex {
    /// `index`.
    pub action: String,
    /// `eventlog`.
    pub tier: String,
    /// The paths.
    pub routes: Vec<String>,
}

/// Executions, newest start first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbExecutions {
    /// `executions`.
    pub action: String,
    /// `eventlog`.
    pub tier: String,
    /// How many there are here.
    pub returned: usize,
    /// The last id here, when there may be more.
    pub next_cursor: Option<String>,
    /// The executions.
    pub executions: Vec<EhdbExecution>,
}

/// How one execution stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbExecution {
    /// Its id, as text.
    pub execution_id: Id,
    /// Its status.
    pub status: String,
    /// Whether nothing can move it any more.
    pub terminal: bool,
    /// The step that was entered last.
    pub current_node: Option<String>,
    /// Its playbook.
    pub path: String,
    /// Its catalog entry, as text.
    pub catalog_id: Id,
    /// The execution that started it, as text.
    pub parent_execution_id: Option<Id>,
    /// How many events its log has.
    pub event_count: u64,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
}

/// One execution, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbState {
    /// `execution`.
    pub action: String,
    /// `eventlog`.
    pub tier: String,
    /// Its id, as text.
    pub execution_id: Id,
    /// Whether there is one.
    pub exists: bool,
    /// How it stands.
    pub state: Option<EhdbExecution>,
}

/// Events of an execution, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbEvents {
    /// `events`.
    pub action: String,
    /// `eventlog`.
    pub tier: String,
    /// Its id, as text.
    pub execution_id: Id,
    /// Whether there is one.
    pub exists: bool,
    /// How many there are here.
    pub returned: usize,
    /// The `after` of the next request, when there may be more.
    pub next_cursor: Option<String>,
    /// The events.
    pub events: Vec<EhdbEvent>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EhdbEvent {
    /// Its id, as text.
    pub event_id: Id,
    /// What happened.
    pub event_type: Option<String>,
    /// The step.
    pub node_name: Option<String>,
    /// Its status text.
    pub status: Option<String>,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
