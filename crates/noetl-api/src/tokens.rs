//! Access tokens: create, list, and revoke. Also the identity of the caller.

use std::fmt;

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Purpose of the token, 1 to 200 characters.
    pub name: String,
    /// Role: `admin`, `operator`, `author`, `viewer`, or `worker`.
    pub role: String,
    /// Lifetime in seconds, from 1 second to 100 years. Default: the token doesn't expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// Pool whose commands the holder may run. For role `worker` only. Default: any pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// An access token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Token ID: the public part of the token.
    pub id: String,
    /// Purpose of the token.
    pub name: String,
    /// Role of the holder: `admin`, `operator`, `author`, `viewer`, or `worker`.
    pub role: String,
    /// Tenant whose data the holder can access.
    pub tenant: String,
    /// Time at which the token was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Expiration time. `null` if the token doesn't expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Revocation time. `null` unless the token is revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// Pool whose commands the holder may run. Absent for any pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
}

/// Response of `POST /api/tokens`. `Debug` output omits the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// Token without its secret, at the top level of the response.
    #[serde(flatten)]
    pub view: TokenView,
    /// Complete token with its secret. No other response contains it.
    pub token: String,
}

impl fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeToken").field("view", &self.view).finish_non_exhaustive()
    }
}

/// Response of `GET /api/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Tokens of the caller's tenant, oldest first, including expired and revoked ones.
    pub tokens: Vec<TokenView>,
}

/// Response of `DELETE /api/tokens/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRevoked {
    /// ID of the revoked token.
    pub id: String,
    /// Always `revoked`. An unknown token is a 404.
    pub status: String,
}

/// Response of `GET /api/whoami`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Whoami {
    /// Name of the caller in records.
    pub name: String,
    /// Tenant whose data the caller can access.
    pub tenant: String,
    /// Roles of the caller.
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
