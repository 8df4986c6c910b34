//! What workers keep for each other, and suites of tests.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An object that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectKept {
    /// Its key.
    pub key: String,
    /// The SHA-256 of its bytes.
    pub digest: String,
    /// How many they are.
    pub bytes: u64,
}

/// A module that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginKept {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: i32,
    /// The SHA-256 of its bytes.
    pub digest: String,
    /// How many they are.
    pub bytes: u64,
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CellsReply {
    /// How many shards keys are spread over.
    pub shard_count: u32,
    /// The cell that is written to.
    pub default_cell: String,
    /// All cells.
    pub cells: Vec<Cell>,
}

/// One place for objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cell {
    /// Its name.
    pub cell: String,
    /// Its environment.
    pub env: String,
    /// Its region.
    pub region: String,
    /// Who runs it.
    pub provider: Option<String>,
    /// Its bucket.
    pub bucket: Option<String>,
    /// Where it is reached.
    pub endpoint: Option<String>,
}

/// The body of `PUT /api/playbook-tests/suites/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutSuite {
    /// The playbook they are about.
    pub playbook_path: String,
    /// The tests.
    #[serde(default)]
    pub tests: Vec<Value>,
    /// Whatever their author notes.
    #[serde(default)]
    pub metadata: Value,
}

/// Tests of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SuiteView {
    /// Their id.
    pub suite_id: String,
    /// Where they are kept.
    pub file_path: String,
    /// The playbook they are about.
    pub playbook_path: String,
    /// The tests.
    pub tests: Vec<Value>,
    /// Whatever their author notes.
    pub metadata: Value,
    /// When they were last put.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// A suite that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuiteDeleted {
    /// Its id.
    pub suite_id: String,
    /// `deleted`.
    pub status: String,
}
