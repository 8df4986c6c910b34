//! Commands: what a worker claims and runs.

use noetl_model::trace::{self, TraceContext};
use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/commands/{event_id}/claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimRequest {
    /// Who claims.
    pub worker_id: String,
    /// How the command is to be told: `native` as it was issued, else in the words of published
    /// workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

/// A claimed command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimReply {
    /// `ok`.
    pub status: String,
    /// The command: the id of its `command.issued` event.
    pub event_id: Id,
    /// What to run.
    #[serde(flatten)]
    pub command: Command,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Command {
    /// Its execution.
    pub execution_id: Id,
    /// Its step.
    pub node_id: String,
    /// Its step again.
    pub node_name: String,
    /// Its tool's kind.
    pub action: String,
    /// What the tool gets.
    pub context: CommandContext,
    /// What helps to place it.
    pub meta: CommandMeta,
}

/// What the tool of a command gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandContext {
    /// The tool's settings, without its kind: a map, or the labelled tasks of a pipeline in a list.
    #[schema(value_type = Object)]
    pub tool_config: Value,
    /// Its named arguments.
    #[schema(value_type = Object)]
    pub args: Map,
    /// Names for templates that are still to be rendered, as published workers know them; none when
    /// nothing is left to render.
    #[schema(value_type = Object)]
    pub render_context: Map,
}

/// What helps to place a command. Its ids are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandMeta {
    /// `<execution>:<step>:<event>`; a worker repeats it in what it reports.
    pub command_id: String,
    /// Its step.
    pub step: String,
    /// Its tool's kind.
    pub tool_kind: String,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// How many tries there are.
    pub max_attempts: u32,
    /// The same again: published workers report what they cannot fetch a credential for only when the
    /// tries are used up, and no other try of theirs would follow.
    #[serde(default)]
    pub attempts: u32,
    /// Its execution.
    pub execution_id: Id,
    /// That execution's playbook.
    pub catalog_id: Id,
    /// Whether it calls for work.
    pub actionable: bool,
    /// Its item's place in a loop, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_index: Option<u32>,
    /// Its trace and its span in it: `traceparent`, `tracestate`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept")]
    #[schema(value_type = Option<Object>)]
    pub trace: Option<TraceContext>,
}
