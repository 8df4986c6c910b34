//! Liveness and health of the control plane.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `GET /health`: the process accepts requests. Doesn't check the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alive {
    /// Always `ok` if the process responds.
    pub status: String,
}

/// Response of `GET /api/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `unhealthy` if the database is unavailable.
    pub status: String,
    /// Database connection: `connected` or `disconnected`.
    pub database: String,
    /// NATS connection: `connected`, `disconnected`, or `not_configured`. Doesn't affect `status`.
    pub nats: String,
    /// Whole seconds since the process started to serve requests.
    pub uptime_seconds: u64,
    /// Version of the server.
    pub version: String,
    /// State of the database as readable text.
    #[serde(default)]
    pub message: String,
    /// Time of the check, by the server's clock.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub timestamp: Option<Timestamp>,
}

impl Health {
    /// Returns `true` if the control plane is healthy: its database responds.
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }
}
