//! Tokens of callers: making, listing, ending.

use std::fmt;

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /api/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// `admin`, `operator`, `author`, `viewer` or `worker`.
    pub role: String,
    /// For how many seconds it counts; for ever when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// Pool whose commands the holder may run. For role `worker` only; any pool when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// A token as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// The part of it that is no secret.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What its holder may do.
    pub role: String,
    /// Whose rows its holder sees.
    pub tenant: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Until when it counts.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Since when it does not count any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// Pool whose commands the holder may run; any pool when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// The reply of `POST /api/tokens`. Printing it shows nothing of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// What lists show of it.
    #[serde(flatten)]
    pub view: TokenView,
    /// The token itself. It is shown here and never again.
    pub token: String,
}

impl fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeToken").field("view", &self.view).finish_non_exhaustive()
    }
}

/// The reply of `GET /api/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<TokenView>,
}

/// The reply of `DELETE /api/tokens/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRevoked {
    /// The token.
    pub id: String,
    /// `revoked`.
    pub status: String,
}

/// The reply of `GET /api/whoami`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// What records call the caller.
    pub name: String,
    /// Whose rows the caller sees.
    pub tenant: String,
    /// What the caller may do.
    pub roles: Vec<String>,
    /// Identity that events and the audit record: `token:` and the token's ID, `oidc:` and the
    /// subject of the identity provider, `session:` and the user of a gateway's session with the
    /// token that acts for it, or the name of a caller without any of these.
    #[serde(default)]
    pub actor: String,
    /// Pool that a worker's token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}
