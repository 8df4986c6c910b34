//! Grants: catalog paths on which callers may act, and credentials that playbooks may use.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/grants`: a role or a credential, and a path prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewGrantView {
    /// Role that is limited to the prefix: `author` or `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Caller that gets the role on the prefix, as `token:ID` or `oidc:SUBJECT`. Default: every
    /// caller with the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Credential that playbooks below the prefix may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Prefix of catalog paths, in whole segments. Empty for all paths.
    pub prefix: String,
}

/// A grant as stored by the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantView {
    /// Grant ID, for `DELETE /api/grants/{id}`.
    pub id: String,
    /// Role or credential, caller, and prefix.
    #[serde(flatten)]
    pub grant: NewGrantView,
    /// Creation time, set by the server.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// Response of `GET /api/grants`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantList {
    /// Grants of the caller's tenant, oldest first.
    pub grants: Vec<GrantView>,
}

/// Response of `DELETE /api/grants/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantRemoved {
    /// ID of the removed grant.
    pub id: String,
    /// Always `removed`. A missing grant is a 404.
    pub status: String,
}
