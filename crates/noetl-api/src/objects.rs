//! Objects and plugin modules that workers share, and test suites of playbooks.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `PUT /api/internal/objects/{key}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectStored {
    /// Object key. May contain slashes.
    pub key: String,
    /// SHA-256 digest of the object.
    pub digest: String,
    /// Size of the object in bytes.
    pub bytes: u64,
}

/// Response of `POST /api/internal/plugins/{path}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginStored {
    /// Path of the module. May contain slashes.
    pub path: String,
    /// Version of the module at that path.
    pub version: i32,
    /// SHA-256 digest of the module.
    pub digest: String,
    /// Size of the module in bytes.
    pub bytes: u64,
}

/// Response of `GET /api/internal/cells`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CellsReply {
    /// Number of shards that object keys are distributed over.
    pub shard_count: u32,
    /// Name of the cell for new objects.
    pub default_cell: String,
    /// All cells. Always one: the control plane's own store.
    pub cells: Vec<StorageCell>,
}

/// A storage location for objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorageCell {
    /// Name of the cell.
    pub cell: String,
    /// Deployment environment of the cell.
    pub env: String,
    /// Region of the cell.
    pub region: String,
    /// Storage provider. `null` for the control plane's own store.
    pub provider: Option<String>,
    /// Bucket of the provider. `null` for the control plane's own store.
    pub bucket: Option<String>,
    /// URL of the provider's API. `null` for the control plane's own store.
    pub endpoint: Option<String>,
}

/// Body of `PUT /api/playbook-tests/suites/{id}`. Replaces an existing suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutSuite {
    /// Catalog path of the playbook under test.
    pub playbook_path: String,
    /// Test cases, in a format that the client defines. Default: none.
    #[serde(default)]
    pub tests: Vec<Value>,
    /// Free-form metadata of the author.
    #[serde(default)]
    pub metadata: Value,
}

/// Test suite of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SuiteView {
    /// ID of the suite. May contain slashes.
    pub suite_id: String,
    /// Path derived from the ID: `playbook-tests/<id>.json`.
    pub file_path: String,
    /// Catalog path of the playbook under test.
    pub playbook_path: String,
    /// Test cases, in a format that the client defines.
    pub tests: Vec<Value>,
    /// Free-form metadata of the author.
    pub metadata: Value,
    /// Time at which the suite was last stored.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// Response of `DELETE /api/playbook-tests/suites/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuiteDeleted {
    /// ID of the deleted suite.
    pub suite_id: String,
    /// Always `deleted`; failures are HTTP errors.
    pub status: String,
}
