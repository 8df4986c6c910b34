//! Results that workers hand in apart from their reports.

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The body of `PUT /api/result/{execution_id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutResult {
    /// Its name.
    pub name: String,
    /// What it is.
    pub data: Value,
    /// How long it is meant to live.
    #[serde(default = "execution")]
    pub scope: String,
    /// The step it comes from.
    #[serde(default)]
    pub source_step: Option<String>,
}

fn execution() -> String {
    "execution".to_owned()
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResultKept {
    /// What it is referred to by.
    #[serde(rename = "ref")]
    pub reference: String,
    /// `db`.
    pub store: String,
    /// How long it is meant to live.
    pub scope: String,
    /// How many bytes its JSON with sorted keys has.
    pub bytes: u64,
    /// The SHA-256 of those.
    pub sha256: String,
    /// When it ends to exist; never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<String>,
}

/// What `GET /api/result/resolve` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ResolveQuery {
    /// The reference.
    #[serde(rename = "ref")]
    pub reference: String,
}
