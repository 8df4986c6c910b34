//! The HTTP edge: routes over the control plane's services.
//!
//! A handler decodes, makes one call and answers. Every failure leaves as JSON with a status, a
//! stable code and a sentence; causes go to the log and never to the caller. In open mode only
//! this machine may ask: the `Host` header must be loopback, and a page must be the server's own.
//! Nothing here decides, stores or names a database.

mod app;
mod connections;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod oidc;
mod reads;
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
