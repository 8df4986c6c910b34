//! HTTP API of the control plane.
//!
//! A handler decodes the request, makes one call to a control-plane service, and encodes the
//! response. Every failure is returned as JSON with a status, a stable code, and a message; its
//! cause is written to the server log and never returned. In open mode only local clients are
//! accepted: the `Host` header must be loopback, and a web page must be the server's own. This
//! crate makes no workflow decisions and has no storage.

mod app;
mod connections;
mod error;
mod event_queries;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod oidc;
mod router;
mod routes;
mod serve;
mod sessions;
mod shape;
mod sign_in_codes;
mod tls;

pub use app::{App, Auth, CorsOrigins, InternalToken, Options};
pub use noetl_web::{File as SiteFile, Site};

pub use http::address::{Network, NetworkError};
pub use http::internal::TOKEN_VARIABLE;
pub use oidc::{Oidc, OidcSettings};
pub use router::router;
pub use routes::tokens::view as token_view;
pub use serve::serve;
pub use sessions::{
    SESSION_CREDENTIAL, SessionCredential, SessionDatabase, SessionFuture, SessionLookup,
    SessionLookupError, Sessions, StoredSession,
};
pub use sign_in_codes::CODE_LASTS;
pub use tls::{Tls, TlsError};
