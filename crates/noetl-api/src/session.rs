//! Session validation for gateways, and browser sign-in.

use std::fmt;

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/auth/session/validate`. `Debug` output omits the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRequest {
    /// Session token. An empty token is never valid.
    #[serde(default)]
    pub session_token: String,
    /// Credential for the session database, such as `pg_auth`. Without it, only access tokens are
    /// sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionRequest(…)")
    }
}

/// Response of `POST /api/auth/session/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionReply {
    /// `ok`, or `error` if the session could not be looked up.
    pub status: String,
    /// Whether the session is valid.
    pub valid: bool,
    /// User of the session. Absent if the session is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<SessionUser>,
    /// Expiration time. Absent if the session doesn't expire or is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Reason why the session is not valid or could not be looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// User of a valid session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionUser {
    /// ID in the session database, or for an access token a number derived from the token's ID.
    pub user_id: i32,
    /// Email address in the session database, or `<token ID>@<tenant>` for an access token.
    pub email: String,
    /// Name in the session database, or the name of the access token.
    pub display_name: String,
    /// Roles in the session database, or the role of the access token.
    pub roles: Vec<String>,
}

/// Response of `GET /api/auth/mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuthMode {
    /// Authentication mode: `open`, `token`, or `oidc`.
    pub mode: String,
    /// Settings for browser sign-in. `null` unless the mode is `oidc` and a client ID is
    /// configured.
    pub sign_in: Option<SignInEndpoint>,
    /// Reason why browser sign-in is unavailable, such as an unreachable identity provider. `null`
    /// if there is none.
    pub trouble: Option<String>,
}

/// Settings for an OIDC authorization request with PKCE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInEndpoint {
    /// Authorization endpoint of the identity provider.
    pub authorization_endpoint: String,
    /// OAuth client ID to send.
    pub client_id: String,
    /// OAuth scopes to request, separated by spaces.
    pub scope: String,
    /// Audience to request for the token.
    pub audience: String,
}

/// Body of `POST /api/auth/oidc/token`. `Debug` output omits the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeRequest {
    /// Authorization code from the identity provider, 1 to 8,192 bytes.
    pub code: String,
    /// PKCE code verifier, 1 to 8,192 bytes.
    pub code_verifier: String,
    /// Redirect URI of the authorization request, 1 to 8,192 bytes.
    pub redirect_uri: String,
}

impl fmt::Debug for CodeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeRequest(…)")
    }
}

/// Body of `POST /api/auth/code`. `Debug` output omits the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OneTimeCode {
    /// Code from a sign-in link. Works once.
    pub code: String,
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(…)")
    }
}

/// Response of `POST /api/auth/codes`. `Debug` output omits the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IssuedCode {
    /// Code for a sign-in link. Works once, and only on the server process that created it.
    pub code: String,
    /// Seconds until the code expires.
    pub expires_in: u64,
}

impl fmt::Debug for IssuedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedCode(…)")
    }
}

/// Response of `POST /api/auth/oidc/token` and `POST /api/auth/code`. `Debug` output omits the
/// token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// Access token, to send as `Authorization: Bearer` with every request.
    pub token: String,
    /// Seconds until the token expires. `null` if unknown.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedIn(…)")
    }
}
