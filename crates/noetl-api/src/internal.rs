//! Requests of system pools: import events, advance projections, purge old data, and locate shards.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;
use crate::events::Rejected;

/// Body of `POST /api/internal/events/project`. The server decodes the items one by one, so a
/// malformed item doesn't affect the others.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ProjectRequest {
    /// Events to import, 1 to 50,000. Each item is a row of the event stream.
    #[schema(value_type = Vec<Value>)]
    pub events: Vec<Box<RawValue>>,
}

/// Response of `POST /api/internal/events/project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectReply {
    /// Number of imported events.
    pub projected: usize,
    /// Number of events that were already stored.
    pub duplicates: usize,
    /// Items that were not imported. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// Response of `POST /api/internal/events/materialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaterializeReply {
    /// Number of imported events.
    pub materialized: usize,
    /// Number of events that were already stored.
    pub duplicates: usize,
    /// Items that were not imported. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// Body of `POST /api/internal/projection/advance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvanceRequest {
    /// IDs of the executions. Duplicates are ignored.
    pub execution_ids: Vec<i64>,
}

/// Response of `POST /api/internal/projection/advance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvanceReply {
    /// Executions whose snapshot is up to date.
    pub advanced: Vec<AdvancedSnapshot>,
    /// Executions whose snapshot could not be updated.
    pub failed: Vec<NotAdvanced>,
}

/// An execution whose snapshot is up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdvancedSnapshot {
    /// ID of the execution.
    pub execution_id: Id,
    /// Highest event ID in the snapshot.
    pub version: i64,
    /// Number of events in the snapshot.
    pub events: u64,
}

/// An execution whose snapshot could not be updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotAdvanced {
    /// ID of the execution.
    pub execution_id: Id,
    /// Reason for the failure.
    pub error: String,
}

/// Body of `POST /api/internal/cleanup/purge`. Optional. A value of zero or less disables that part
/// of the purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PurgeRequest {
    /// Days to retain commands of finished executions, counted from the end of the command.
    /// Default: 7.
    pub command_retention_days: i64,
    /// Minutes to retain worker pools, counted from their last heartbeat. Default: 60.
    pub runtime_stale_minutes: i64,
    /// Days to retain finished executions with all their data, counted from their last event.
    /// Default: 0, which retains them forever.
    pub event_retention_days: i64,
    /// Whether to report the purge without deleting anything. Default: `false`.
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

/// Response of `POST /api/internal/cleanup/purge`. With `dry_run`, the values are those that a
/// purge would have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PurgeReply {
    /// Number of deleted commands.
    pub commands_purged: u64,
    /// Number of deleted worker pools.
    pub runtime_purged: u64,
    /// Number of dropped partitions of the event log.
    pub events_purged: usize,
    /// Names of the dropped partitions. Without partitions (SQLite): past calendar quarters whose
    /// executions were deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_partitions_dropped: Vec<String>,
    /// Partitions that still contain executions, with the reason. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<RetainedPart>,
    /// Whether this was a dry run that deleted nothing.
    pub dry_run: bool,
}

/// A partition of the event log that was retained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetainedPart {
    /// Name of the partition.
    pub partition: String,
    /// Reason why the partition is retained.
    pub reason: String,
}

/// Response of `GET /api/runtime/shard-info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShardInfo {
    /// ID of the execution.
    pub execution_id: Id,
    /// Number of shards in the request. Default: 1.
    pub shard_count: u32,
    /// Zero-based index of the execution's shard.
    pub shard_index: u32,
    /// Always `noetl-server`: names the program that computed the shard.
    pub source: String,
    /// Hash function that maps execution IDs to shards.
    pub hash_function: String,
    /// Seed of the hash function.
    pub seed: u64,
    /// Shard that this server serves.
    pub server_config: ServerShard,
}

/// Shard that a server serves. Every server serves all executions, so this is always shard 0 of 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerShard {
    /// Zero-based index of the shard.
    pub shard_index: u32,
    /// Number of shards in total.
    pub shard_count: u32,
}
