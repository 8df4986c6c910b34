//! HTTP API of the control plane.
//!
//! A handler decodes the request, makes one call to a control-plane service, and encodes the
//! response. Every failure is returned as JSON with a status, a stable code, and a message; its
//! cause is written to the server log and never returned. In open mode only local clients are
//! accepted: the `Host` header must be loopback, and a web page must be the server's own. This
//! crate makes no workflow decisions and has no storage.

mod app;
mod capacity;
mod connections;
mod error;
mod event_queries;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod options;
mod router;
mod routes;
mod serve;
mod shape;
mod tls;

pub use app::App;
pub use noetl_access::{
    Auth, CODE_LASTS, InternalToken, Network, NetworkError, Oidc, OidcSettings, SESSION_CREDENTIAL,
    SessionCredential, SessionDatabase, SessionFuture, SessionLookup, SessionLookupError, Sessions,
    StoredSession, TOKEN_VARIABLE,
};
pub use noetl_web::{File as SiteFile, Site};

pub use options::{CorsOrigins, Options};
pub use router::router;
pub use routes::tokens::view as token_view;
pub use serve::serve;
pub use tls::{Tls, TlsError};
