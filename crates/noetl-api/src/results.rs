//! Results that workers store separately from their reports.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Body of `PUT /api/result/{execution_id}`, up to 64 MiB. Each request stores a new result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutResult {
    /// Name of the result.
    pub name: String,
    /// Result as JSON. The server redacts known secrets.
    pub data: Value,
    /// Intended lifetime, as free text. Not enforced. Default: `execution`.
    #[serde(default = "execution")]
    pub scope: String,
    /// Step that produced the result.
    #[serde(default)]
    pub source_step: Option<String>,
}

fn execution() -> String {
    "execution".to_owned()
}

/// Response of `PUT /api/result/{execution_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResultStored {
    /// Reference to the result, for `GET /api/result/resolve`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Always `db`: the result is in the control plane's store.
    pub store: String,
    /// Intended lifetime from the request. Not enforced.
    pub scope: String,
    /// Size in bytes of the result's JSON with sorted keys.
    pub bytes: u64,
    /// SHA-256 digest of the result's JSON with sorted keys.
    pub sha256: String,
    /// Expiration time. Always `null`: stored results don't expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
}

/// Query of `GET /api/result/resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ResolveQuery {
    /// Reference to a stored result, a large step result, or an object of a published worker.
    #[serde(rename = "ref")]
    pub reference: String,
}
