//! What system pools send: rows to keep, projections to advance, what is old to remove.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;
use crate::events::Rejected;

/// The body of `POST /api/internal/events/project`. Its items are decoded one by one, so that one
/// that is wrong does not take the others with it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ProjectRequest {
    /// Each one a row of the log.
    #[schema(value_type = Vec<Value>)]
    pub events: Vec<Box<RawValue>>,
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectReply {
    /// How many rows were kept.
    pub projected: usize,
    /// How many were there before.
    pub duplicates: usize,
    /// What was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// The reply of `POST /api/internal/events/materialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaterializeReply {
    /// How many events were kept.
    pub materialized: usize,
    /// How many were there before.
    pub duplicates: usize,
    /// What was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// The body of `POST /api/internal/projection/advance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvanceRequest {
    /// The executions; one that is named twice is advanced once.
    pub execution_ids: Vec<i64>,
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvanceReply {
    /// Those that were.
    pub advanced: Vec<Advanced>,
    /// Those that were not.
    pub failed: Vec<NotAdvanced>,
}

/// An execution whose snapshot is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advanced {
    /// The execution.
    pub execution_id: Id,
    /// The highest event id in it.
    pub version: i64,
    /// How many events there are.
    pub events: u64,
}

/// An execution whose snapshot could not be brought up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotAdvanced {
    /// The execution.
    pub execution_id: Id,
    /// Why not.
    pub error: String,
}

/// The body of `POST /api/internal/cleanup/purge`. A number of zero or less keeps what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PurgeRequest {
    /// Commands of finished executions, in days since they ended.
    pub command_retention_days: i64,
    /// Worker pools, in minutes since their last heartbeat.
    pub runtime_stale_minutes: i64,
    /// Finished executions with everything they have, in days since their last event.
    pub event_retention_days: i64,
    /// Whether to say what would go, and change nothing.
    pub dry_run: bool,
}

impl Default for PurgeRequest {
    fn default() -> Self {
        Self {
            command_retention_days: 7,
            runtime_stale_minutes: 60,
            event_retention_days: 0,
            dry_run: false,
        }
    }
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PurgeReply {
    /// How many commands went.
    pub commands_purged: u64,
    /// How many worker pools were removed.
    pub runtime_purged: u64,
    /// How many partitions of the event log were dropped.
    pub events_purged: usize,
    /// Names of the dropped partitions. Without partitions (SQLite): calendar quarters that are over
    /// and whose executions were removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_partitions_dropped: Vec<String>,
    /// Parts of the log that hold executions still, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptPart>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// A part of the log that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptPart {
    /// Its name.
    pub partition: String,
    /// What keeps it.
    pub reason: String,
}

/// The reply of `GET /api/runtime/shard-info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShardInfo {
    /// The execution.
    pub execution_id: Id,
    /// Of how many shards.
    pub shard_count: u32,
    /// The shard it is in.
    pub shard_index: u32,
    /// Who says so.
    pub source: String,
    /// By which function.
    pub hash_function: String,
    /// With which seed.
    pub seed: u64,
    /// Which of several servers answers.
    pub server_config: ServerShard,
}

/// One server of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerShard {
    /// Its number.
    pub shard_index: u32,
    /// How many there are.
    pub shard_count: u32,
}
