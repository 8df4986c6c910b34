//! Settings of authentication.

use crate::internal::InternalToken;
use crate::oidc::Oidc;
use crate::sessions::Sessions;

/// Authentication mode of the API.
#[derive(Debug, Clone, Default)]
pub enum Auth {
    /// No authentication: every client that reaches the listener may call all routes except the
    /// internal ones.
    #[default]
    Open,
    /// Requires an access token issued by this control plane.
    Token,
    /// Requires a token of an identity provider, or an access token issued by this control plane.
    Oidc(Oidc),
}

/// Credentials that [`Access`](crate::Access) accepts.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Authentication mode. Default: [`Auth::Open`].
    pub auth: Auth,
    /// Access token of the internal routes. Default: none, so every request to them is rejected.
    pub internal_token: InternalToken,
    /// Database of the sessions that gateways validate. Default: none, so access tokens are the
    /// only sessions.
    pub sessions: Option<Sessions>,
}
