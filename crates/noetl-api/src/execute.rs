//! Starting executions, one at a time or in batches.

use noetl_model::Map;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{Id, Version};

/// Body of `POST /api/execute`. Requires `path` or `catalog_id`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteRequest {
    /// Catalog path of the playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Catalog entry ID of the playbook. Takes precedence over `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_id: Option<Id>,
    /// Version at that path. Default: the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Values merged over the playbook's workload. Also accepted as `workload`.
    #[serde(default, alias = "workload")]
    #[schema(value_type = Object)]
    pub payload: Map,
    /// ID of the execution or subscription that requests the start. Becomes the parent of the new
    /// execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_execution_id: Option<Id>,
    /// Worker pool for the execution's commands, at most 200 characters. Default: `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
    /// Trace context of the caller: `traceparent`, `tracestate`, and `baggage`. Default: the trace
    /// context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub trace: Option<Map>,
    /// Deduplication: starts at most one execution per key within a time window. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<StartDedup>,
}

/// Deduplication of execution starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartDedup {
    /// Dedup key, 1 to 500 characters. Unique per parent.
    pub key: String,
    /// Length of the window in seconds, 1 to 604,800 (7 days). Default: 300.
    #[serde(default = "StartDedup::default_window")]
    pub window_secs: u64,
}

impl StartDedup {
    const fn default_window() -> u64 {
        300
    }
}

impl ExecuteRequest {
    /// Runs the newest version at a path with this payload.
    pub fn path(path: impl Into<String>, payload: Map) -> Self {
        Self { path: Some(path.into()), payload, ..Self::default() }
    }
}

/// Response of `POST /api/execute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteReply {
    /// ID of the execution, as text.
    pub execution_id: Id,
    /// `started`, or `duplicate` if the dedup key already started this execution.
    pub status: String,
    /// Number of commands issued by the start. 0 for a duplicate.
    pub commands_generated: usize,
}

/// Body of `POST /api/execute/batch`. The server decodes the items one by one, so a malformed item
/// doesn't affect the others.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchRequest)]
pub struct ExecuteBatchRequest {
    /// Executions to start, 1 to 1,000. Each item has the format of `POST /api/execute`.
    #[schema(value_type = Vec<ExecuteRequest>, min_items = 1, max_items = 1000)]
    pub executions: Vec<Box<RawValue>>,
}

/// Response of `POST /api/execute/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchReply)]
pub struct ExecuteBatchReply {
    /// Number of items in the request.
    pub count: usize,
    /// Number of started executions.
    pub started: usize,
    /// Number of items whose dedup key had already started an execution.
    pub duplicates: usize,
    /// Number of items that failed to start.
    pub failed: usize,
    /// Results of the items, in request order.
    pub results: Vec<BatchResult>,
}

/// Outcome of one item of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchResult)]
pub struct BatchResult {
    /// Zero-based index in the request.
    pub index: usize,
    /// `started`, `duplicate`, or `error`.
    pub status: String,
    /// Execution ID, as text. Absent on error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// Number of commands issued by the start.
    pub commands_generated: usize,
    /// Reason for the failure. Absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
