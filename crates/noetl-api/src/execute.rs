//! Starting an execution.

use noetl_model::Map;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{Id, Version};

/// The body of `POST /api/execute`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteRequest {
    /// The catalog path to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The catalog entry to run; wins over `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_id: Option<Id>,
    /// The path's version; the highest when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Laid over the playbook's workload.
    #[serde(default, alias = "workload")]
    #[schema(value_type = Object)]
    pub payload: Map,
    /// The execution that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_execution_id: Option<Id>,
    /// Which workers its commands go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
    /// The caller's trace: `traceparent`, `tracestate`, `baggage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub trace: Option<Map>,
    /// A window in which the same key starts nothing again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<Dedup>,
}

/// When a start counts as a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Dedup {
    /// What is the same in a repeat.
    pub key: String,
    /// For how long, in seconds.
    #[serde(default = "Dedup::default_window")]
    pub window_secs: u64,
}

impl Dedup {
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

/// What was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteReply {
    /// The execution, as text.
    pub execution_id: Id,
    /// `started`, or `duplicate` when an execution was started for the same key before.
    pub status: String,
    /// How many commands its first step led to.
    pub commands_generated: usize,
}

/// The body of `POST /api/execute/batch`. Its items are decoded one by one, so that one that is wrong
/// does not take the others with it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchRequest)]
pub struct BatchRequest {
    /// What to start, 1 to 1000 of what `POST /api/execute` takes.
    #[schema(value_type = Vec<ExecuteRequest>, min_items = 1, max_items = 1000)]
    pub executions: Vec<Box<RawValue>>,
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchReply)]
pub struct BatchReply {
    /// How many were asked for.
    pub count: usize,
    /// How many were started.
    pub started: usize,
    /// How many had been started before.
    pub duplicates: usize,
    /// How many were not started.
    pub failed: usize,
    /// What became of each, in the order asked.
    pub results: Vec<BatchResult>,
}

/// What became of one of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExecuteBatchResult)]
pub struct BatchResult {
    /// Its place in the request, from 0.
    pub index: usize,
    /// `started`, `duplicate` or `error`.
    pub status: String,
    /// The execution, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// How many commands its first step led to.
    pub commands_generated: usize,
    /// Why it was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
