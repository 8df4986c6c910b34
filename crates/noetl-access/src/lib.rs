//! Authentication of callers, and the roles that they have.
//!
//! [`Access`] finds the caller of a request by its headers: an access token of this control plane, a
//! token of an OpenID Connect provider, the internal token, or a session that a gateway forwards.
//! This crate has no routes: which role a route requires, and which rows a caller sees, is decided
//! by the server.

mod address;
mod authorization;
mod caller;
mod error;
mod internal;
mod oidc;
mod options;
mod roles;
mod service;
mod sessions;
mod sign_in_codes;

pub use address::{Network, NetworkError, client_address};
pub use caller::Caller;
pub use error::AccessError;
pub use internal::{InternalToken, TOKEN_VARIABLE};
pub use oidc::{
    CodeExchange, IssuedToken, Issuers, Oidc, OidcError, OidcSettings, ProviderEndpoint,
};
pub use options::{Auth, Options};
pub use roles::{RequiredRole, Roles};
pub use service::{Access, GATEWAYS, SESSION};
pub use sessions::{
    SESSION_CREDENTIAL, SessionCredential, SessionDatabase, SessionFuture, SessionLookup,
    SessionLookupError, Sessions, StoredSession,
};
pub use sign_in_codes::{CODE_LASTS, CodeHolder, SignInCodes};
