//! Whether a control plane is well.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The reply of `GET /health`: the process answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alive {
    /// `ok`.
    pub status: String,
}

/// The reply of `GET /api/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `unhealthy`.
    pub status: String,
    /// `connected` or `disconnected`.
    pub database: String,
    /// `connected`, `disconnected`, or `not_configured` when no bus was named.
    pub nats: String,
    /// Whole seconds since the process began to serve.
    pub uptime_seconds: u64,
    /// The program's version.
    pub version: String,
    /// The same as a sentence.
    #[serde(default)]
    pub message: String,
    /// When this was found.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub timestamp: Option<Timestamp>,
}

impl Health {
    /// Whether everything the control plane needs answers.
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }
}
