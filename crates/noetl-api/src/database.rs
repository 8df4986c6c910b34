//! Access to the control plane's database for operators.

use noetl_model::{Map, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/postgres/execute`. The first non-empty field of `query`, `query_base64`, and
/// `procedure` is executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlRequest {
    /// SQL statement to execute.
    #[serde(default)]
    pub query: Option<String>,
    /// SQL statement to execute, in base64.
    #[serde(default)]
    pub query_base64: Option<String>,
    /// Procedure to call, such as `noetl.tidy(1)`.
    #[serde(default)]
    pub procedure: Option<String>,
    /// Values of the parameters `$1`, `$2`, …
    #[serde(default)]
    pub parameters: Option<Vec<Value>>,
    /// Schema for unqualified names.
    #[serde(default, alias = "db_schema")]
    pub schema: Option<String>,
}

/// Response of `POST /api/postgres/execute`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SqlReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Result rows, each mapping column names to values.
    #[schema(value_type = Vec<Object>)]
    pub result: Vec<Map>,
}

/// Response of `POST /api/db/init` and `GET /api/db/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SchemaReply {
    /// `ok`, or `error` if tables are missing.
    pub status: String,
    /// State of the schema as readable text.
    pub message: String,
    /// Whether all required tables exist.
    pub valid: bool,
    /// Existing tables. Only in the response of `GET /api/db/validate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Missing tables. Only in the response of `GET /api/db/validate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
}
