//! Sessions, as gateways validate them, and signing in.

use std::fmt;

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/auth/session/validate`. Debug output leaves the token out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRequest {
    /// Session token. An empty one is never valid.
    #[serde(default)]
    pub session_token: String,
    /// Credential that describes the database of sessions, such as `pg_auth`. Without it, only access
    /// tokens are sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionRequest(…)")
    }
}

/// Reply of `POST /api/auth/session/validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionReply {
    /// `ok`, or `error` if the session could not be looked up.
    pub status: String,
    /// Whether the session is valid.
    pub valid: bool,
    /// User of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<SessionUser>,
    /// Expiration time. Absent for a session that doesn't expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Why the session is not valid, or could not be looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// User of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionUser {
    /// ID in the database of sessions, or a number that is always the same for one token.
    pub user_id: i32,
    /// Email address in the database of sessions, or the token's ID at its tenant.
    pub email: String,
    /// Name in the database of sessions, or the name of the token.
    pub display_name: String,
    /// Roles in the database of sessions, or the role of the token.
    pub roles: Vec<String>,
}

/// The reply of `GET /api/auth/mode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuthMode {
    /// `open`, `token` or `oidc`.
    pub mode: String,
    /// Where people sign in with a browser, if that was set up.
    pub sign_in: Option<SignInPlace>,
    /// Why they cannot now, though it was.
    pub trouble: Option<String>,
}

/// Where people sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInPlace {
    /// The provider's page.
    pub authorization_endpoint: String,
    /// As whom a page asks there.
    pub client_id: String,
    /// For what.
    pub scope: String,
    /// Whom the token is to be made for.
    pub audience: String,
}

/// The body of `POST /api/auth/oidc/token`. Printing it shows nothing of the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeRequest {
    /// The code that the provider gave.
    pub code: String,
    /// What the challenge was made from.
    pub code_verifier: String,
    /// Where the provider sent the person back to.
    pub redirect_uri: String,
}

impl fmt::Debug for CodeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeRequest(…)")
    }
}

/// The body of `POST /api/auth/code`. Printing it shows nothing of the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OneTimeCode {
    /// Code of a sign-in link.
    pub code: String,
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(…)")
    }
}

/// The reply of `POST /api/auth/codes`. Printing it shows nothing of the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IssuedCode {
    /// Code that can be traded once.
    pub code: String,
    /// Seconds in which it can be traded.
    pub expires_in: u64,
}

impl fmt::Debug for IssuedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedCode(…)")
    }
}

/// Who signed in has this. Printing it shows nothing of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// The token to show with every request.
    pub token: String,
    /// For how many seconds it is good, if that is known.
    pub expires_in: Option<u64>,
}

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedIn(…)")
    }
}
