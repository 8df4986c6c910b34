//! Step logs: lines that steps print.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/executions/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogRequest {
    /// Command that printed the lines: the ID of its `command.issued` event, or
    /// `<execution>:<step>:<event>`.
    pub command_id: String,
    /// Printed lines in order, at most 1,000. The server redacts known secrets and splits lines
    /// longer than 16 KiB.
    pub lines: Vec<LogLineItem>,
}

/// A line that a step printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLineItem {
    /// Time at which the line was printed. Default: the time of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// Output stream: `stdout` or `stderr`. Default: `stdout`.
    #[serde(default = "LogLineItem::stdout")]
    pub stream: String,
    /// Text of the line.
    pub text: String,
}

impl LogLineItem {
    fn stdout() -> String {
        "stdout".to_owned()
    }
}

/// Response of `POST /api/executions/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogAccepted {
    /// ID of the execution.
    pub execution_id: Id,
    /// Number of accepted lines, as counted in the request.
    pub accepted: usize,
    /// Number of the last stored line.
    pub last: u64,
}

/// Response of `GET /api/executions/{id}/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogReply {
    /// ID of the execution.
    pub execution_id: Id,
    /// Page of lines in ascending number.
    pub lines: Vec<LineView>,
    /// Value of `after` for the next request.
    pub next_after: u64,
    /// Lines that were dropped, by command.
    pub gaps: Vec<GapView>,
}

/// Server-sent event of `GET /api/executions/{id}/logs?follow=true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogEvent {
    /// `end` after the last line of an ended execution. Absent for a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Number of the line. Absent for `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The line, or for `end` the final status of the execution, as JSON.
    pub data: String,
}

/// A line of a step's logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineView {
    /// Line number, ascending within the execution.
    pub n: u64,
    /// ID of the command that printed the line, as text.
    pub command_id: Id,
    /// Time at which the line was printed.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Output stream: `stdout` or `stderr`.
    pub stream: String,
    /// Text of the line.
    pub text: String,
}

/// Lines of a command that the server dropped. The server stores the first and the newest 512 KiB
/// of each command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapView {
    /// ID of the command, as text.
    pub command_id: Id,
    /// Number of the line before the gap. 0 if there is none.
    pub after: u64,
    /// Number of dropped lines.
    pub lines: u64,
    /// Size of the dropped lines in bytes.
    pub bytes: u64,
}
