//! Completions of commands reported by remote workers, and blobs for results too large to inline.

use noetl_model::{Failure, Map, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;
use crate::workers::LeasedCommand;

/// Body of `POST /api/worker/report`. The server decodes the items one by one, so a malformed item
/// doesn't affect the others.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CompletionsRequest {
    /// Name of the worker that ran the commands.
    pub worker_id: String,
    /// Completions, at most 1,000. Each item is an [`CompletionItem`].
    #[schema(value_type = Vec<CompletionItem>)]
    pub ends: Vec<Box<RawValue>>,
    /// Commands that the worker accepts with the response. For each completion, the server may
    /// claim one matching command that the completion issued and return it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextCommandFilter>,
}

/// Commands that a worker accepts as a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextCommandFilter {
    /// Worker pool of the command. Default: `shared`.
    #[serde(default)]
    pub pool: Option<String>,
    /// Tool kinds that the worker supports. Default: all.
    #[serde(default)]
    pub kinds: Option<Vec<String>>,
}

/// Completion of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompletionItem {
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Result of the command. With `content`, only the small fields of the result.
    #[serde(default)]
    pub data: Value,
    /// Blob that holds the result, if the result is too large for the event log. Ignored if
    /// `failure` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentStored>,
    /// Failure of the command. If set, `data` and `content` are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub failure: Option<Failure>,
    /// Execution variables that the command set, keyed by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub ctx: Map,
    /// Variables that the command set for its step run only, keyed by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub step: Map,
}

/// Reference to a stored blob. Response of `PUT /api/worker/content/{digest}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentStored {
    /// SHA-256 digest of the blob.
    pub digest: String,
    /// Size of the blob in bytes.
    pub bytes: u64,
}

/// Response of `POST /api/worker/report`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CompletionsReply {
    /// Outcomes of the completions, in request order.
    pub ends: Vec<CompletionResult>,
}

/// Outcome of one reported completion.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CompletionResult {
    /// Whether the completion was committed, and whether to resend it.
    pub status: CompletionStatus,
    /// Reason for status `again` or `refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Command handed off to the worker: claimed and leased to it. The server repeats the handoff
    /// if the worker resends the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<LeasedCommand>>,
}

/// Outcome of one reported completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStatus {
    /// The completion was committed.
    Taken,
    /// The command had already ended or is unknown. The completion has no effect on the execution,
    /// and resending it is harmless.
    Late,
    /// The completion could not be committed. Resend it.
    Again,
    /// The completion is invalid. Don't resend it.
    Refused,
}
