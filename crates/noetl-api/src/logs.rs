//! Lines that steps print.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/executions/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogRequest {
    /// The command that printed them: the id of its `command.issued`, or `execution:step:id`.
    pub command_id: String,
    /// What it printed, in order.
    pub lines: Vec<LineGiven>,
}

/// A line that is handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineGiven {
    /// When it was printed; now when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// `stdout` or `stderr`.
    #[serde(default = "LineGiven::stdout")]
    pub stream: String,
    /// The line.
    pub text: String,
}

impl LineGiven {
    fn stdout() -> String {
        "stdout".to_owned()
    }
}

/// The reply to lines that were handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogAccepted {
    /// The execution.
    pub execution_id: Id,
    /// How many were taken.
    pub accepted: usize,
    /// The number of the last.
    pub last: u64,
}

/// The reply of `GET /api/executions/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogReply {
    /// The execution.
    pub execution_id: Id,
    /// Lines in order.
    pub lines: Vec<LineView>,
    /// Where to go on: the `after` of the next request.
    pub next_after: u64,
    /// Lines that are not kept, by command.
    pub gaps: Vec<GapView>,
}

/// What one who follows is sent, as a server-sent event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogEvent {
    /// `end` when the execution is over; left out for a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The number of a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A line, or how the execution ended, as JSON.
    pub data: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineView {
    /// Its number among the lines of its execution.
    pub n: u64,
    /// The command that printed it, as text.
    pub command_id: Id,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The line.
    pub text: String,
}

/// Lines of a command that are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapView {
    /// The command, as text.
    pub command_id: Id,
    /// The line before them; 0 when there is none.
    pub after: u64,
    /// How many.
    pub lines: u64,
    /// How many bytes.
    pub bytes: u64,
}
