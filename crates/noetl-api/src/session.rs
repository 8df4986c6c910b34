//! Sessions, as gateways ask for them.

use std::fmt;

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /api/auth/session/validate`. Printing it shows nothing of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRequest {
    /// The token; none is never good.
    #[serde(default)]
    pub session_token: String,
}

impl fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionRequest(…)")
    }
}

/// Whose a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionReply {
    /// `ok`.
    pub status: String,
    /// Whether it is good.
    pub valid: bool,
    /// Who shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<SessionUser>,
    /// Until when it is good; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who shows a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionUser {
    /// A number that is always the same for one token.
    pub user_id: i32,
    /// The token's id at its tenant.
    pub email: String,
    /// What the token is for.
    pub display_name: String,
    /// What its holder may do.
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
