//! The database below a control plane.

use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /api/postgres/execute`. One of the first three says what to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlRequest {
    /// A statement.
    #[serde(default)]
    pub query: Option<String>,
    /// A statement in base64.
    #[serde(default)]
    pub query_base64: Option<String>,
    /// A procedure to call, as `noetl.tidy(1)`.
    #[serde(default)]
    pub procedure: Option<String>,
    /// What stands for `$1`, `$2`, … in it.
    #[serde(default)]
    pub parameters: Option<Vec<Value>>,
    /// The schema of names without one.
    #[serde(default, alias = "db_schema")]
    pub schema: Option<String>,
}

/// What a statement returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlReply {
    /// `ok`.
    pub status: String,
    /// Its rows: column to value.
    #[schema(value_type = Vec<Object>)]
    pub result: Vec<Map>,
}

/// Whether the schema is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SchemaReply {
    /// `ok` or `error`.
    pub status: String,
    /// In one sentence.
    pub message: String,
    /// Whether nothing is missing.
    pub valid: bool,
    /// The tables there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Those that should be there and are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
}
