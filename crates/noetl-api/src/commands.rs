//! Commands: read and claim units of work for a worker.

use noetl_model::trace::{self, TraceContext};
use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/commands/{event_id}/claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimRequest {
    /// Name of the claiming worker. Must not be empty.
    pub worker_id: String,
    /// Encoding of the command in the response. `native`: as issued. Default: the encoding that
    /// published workers expect. Other values are an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// Response of `POST /api/commands/{event_id}/claim`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// The command to run.
    #[serde(flatten)]
    pub command: Command,
}

/// A command: one unit of work for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Command {
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Name of the command's step.
    pub node_id: String,
    /// Name of the command's step. Same value as `node_id`.
    pub node_name: String,
    /// Tool kind, such as `http`.
    pub action: String,
    /// Input of the tool.
    pub context: CommandContext,
    /// Identifiers and attempt counts.
    pub meta: CommandMeta,
}

/// Input of a command's tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandContext {
    /// Tool settings without the kind: an object, or for a pipeline a list of labeled tasks.
    #[schema(value_type = Object)]
    pub tool_config: Value,
    /// Named arguments of the tool.
    #[schema(value_type = Object)]
    pub args: Map,
    /// Template variables for templates that the worker renders, in the layout that published
    /// workers expect. Empty if all templates are rendered.
    #[schema(value_type = Object)]
    pub render_context: Map,
}

/// Identifiers and attempt counts of a command. IDs are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandMeta {
    /// `<execution>:<step>:<event>`. A worker repeats this ID in its reports.
    pub command_id: String,
    /// Name of the command's step.
    pub step: String,
    /// Tool kind, such as `http`.
    pub tool_kind: String,
    /// Attempt number, starting at 1.
    pub attempt: u32,
    /// Number of attempts before the step fails with `worker_lost`.
    pub max_attempts: u32,
    /// Same value as `max_attempts`. A published worker that can't fetch a credential reports that
    /// only if no attempt remains, and otherwise makes no further attempt. Equal values make it
    /// report the failure.
    #[serde(default)]
    pub attempts: u32,
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Catalog entry ID of the execution's playbook.
    pub catalog_id: Id,
    /// Whether the command requires work. Always `true`.
    pub actionable: bool,
    /// Zero-based index of the loop item. Absent outside a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_index: Option<u32>,
    /// W3C trace context with the command's span: `traceparent` and `tracestate`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept")]
    #[schema(value_type = Option<Object>)]
    pub trace: Option<TraceContext>,
}
