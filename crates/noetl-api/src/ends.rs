//! How commands ended, as our workers say it, and content that is too large to be said.

use noetl_model::{Failure, Map, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;
use crate::workers::LeasedCommand;

/// The body of `POST /api/worker/report`. Its items are decoded one by one, so that one that is wrong
/// does not take the others with it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EndsRequest {
    /// Who ran them.
    pub worker_id: String,
    /// Each one an [`EndGiven`].
    #[schema(value_type = Vec<EndGiven>)]
    pub ends: Vec<Box<RawValue>>,
    /// What it takes next in the place of each of them, if that follows from it; nothing when nothing is
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextWanted>,
}

/// What a worker takes in the place of a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextWanted {
    /// The pool it is of; `shared` when nothing is said.
    #[serde(default)]
    pub pool: Option<String>,
    /// The kinds of tools it has; all when nothing is said.
    #[serde(default)]
    pub kinds: Option<Vec<String>>,
}

/// How one command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndGiven {
    /// Its execution.
    pub execution_id: Id,
    /// The command: the id of its `command.issued`.
    pub event_id: Id,
    /// Its result, or with `content` the small fields of it.
    #[serde(default)]
    pub data: Value,
    /// Where its result is, when it is larger than the log takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentKept>,
    /// Why it failed; then it has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub failure: Option<Failure>,
    /// Variables of the execution it set: dotted path to value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub ctx: Map,
    /// What it set for its step's visit alone, likewise.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub step: Map,
}

/// Content that was kept: the reply of `PUT /api/worker/content/{digest}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentKept {
    /// The SHA-256 of its bytes.
    pub digest: String,
    /// How many they are.
    pub bytes: u64,
}

/// What became of each end.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EndsReply {
    /// One for each, in order.
    pub ends: Vec<EndAnswer>,
}

/// What became of one end.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EndAnswer {
    /// What it means.
    pub status: EndStatus,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A command it holds from now on, in the place of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<LeasedCommand>>,
}

/// What became of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    /// It counts.
    Taken,
    /// The command was over: nothing has changed, and saying it again changes nothing either.
    Late,
    /// It could not be taken now; say it again.
    Again,
    /// It cannot be taken as it is.
    Refused,
}
