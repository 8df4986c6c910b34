//! Sessions that the login playbook of a gateway stores in a database of its own.
//!
//! A credential describes the database. The operator names it, so no caller can make the server
//! connect to a host of the caller's choice.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noetl_control::Asking;
use noetl_model::{Tenant, Timestamp, Value};

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::Caller;

/// Variable with the name of the credential, for messages.
pub const SESSION_CREDENTIAL: &str = "NOETL_SESSION_CREDENTIAL";

/// Time for which a decrypted credential is used before it is read, and recorded in the audit, again.
const CREDENTIAL_TTL: Duration = Duration::from_secs(60);

/// Longest session token that is looked up, in bytes.
const TOKEN_MAX: usize = 1024;

/// A session that is valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// ID of the user in the database of the sessions.
    pub user_id: i32,
    /// Email address, as the login playbook stored it.
    pub email: String,
    /// Name, as the login playbook stored it.
    pub display_name: String,
    /// Roles in the database of the sessions. They aren't roles of this control plane.
    pub roles: Vec<String>,
    /// Time at which the session expires.
    pub expires_at: Timestamp,
}

/// Why a session could not be looked up.
#[derive(Debug, thiserror::Error)]
#[error("failed to look up a session: {0}")]
pub struct SessionLookupError(pub String);

/// Outcome of a lookup: `None` if the session is unknown, expired, or inactive.
pub type SessionLookup = Result<Option<StoredSession>, SessionLookupError>;

/// A lookup in progress.
pub type SessionFuture<'a> = Pin<Box<dyn Future<Output = SessionLookup> + Send + 'a>>;

/// A decrypted credential that describes a database of sessions.
pub struct SessionCredential {
    /// Name of the credential.
    pub name: String,
    /// Type of the credential, such as `postgres`.
    pub kind: String,
    /// Data of the credential.
    pub data: Value,
}

/// Finds sessions in a database.
pub trait SessionDatabase: Send + Sync {
    /// Looks a session up in the database that a credential describes.
    fn find<'a>(&'a self, credential: &'a SessionCredential, token: &'a str) -> SessionFuture<'a>;
}

/// Decrypted credential, and when it was read.
type Opened = Option<(Arc<SessionCredential>, Instant)>;

/// The database of sessions. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    credential: Arc<str>,
    database: Arc<dyn SessionDatabase>,
    opened: Arc<Mutex<Opened>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("credential", &self.credential).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Looks sessions up with the credential of this name in the default tenant: another tenant could
    /// make the server connect to a host of its choice.
    pub fn new(credential: &str, database: Arc<dyn SessionDatabase>) -> Self {
        Self { credential: credential.into(), database, opened: Arc::default() }
    }

    /// Name of the credential.
    pub(crate) fn credential(&self) -> &str {
        &self.credential
    }

    /// Returns a valid session, or `None` if it is unknown, expired, or inactive.
    ///
    /// # Errors
    ///
    /// 503 if the credential can't be read or the database is unavailable.
    pub(crate) async fn find(
        &self,
        app: &App,
        caller: &Caller,
        token: &str,
    ) -> Result<Option<StoredSession>, ApiError> {
        if token.is_empty() || token.len() > TOKEN_MAX || token.contains('\0') {
            return Ok(None);
        }
        let credential = self.open(app, caller).await?;
        // As many at a time as lookups of access tokens: a gateway forwards text of strangers.
        let _check = app.places.check().await;
        self.database.find(&credential, token).await.map_err(|error| {
            tracing::warn!(credential = &*self.credential, %error, "session lookup failed");
            let message = "the database of sessions is unavailable; the server log has the cause";
            ApiError::unavailable("session_database_unavailable", message)
        })
    }

    /// Returns the actor that records name: the user of a session by ID, and the token that acts for
    /// the user. Names and addresses come from outside, so they are no part of it.
    pub(crate) fn actor(&self, session: &StoredSession, token: &str) -> Arc<str> {
        format!("session:{}/{} via {token}", self.credential, session.user_id).into()
    }

    /// Returns `true` if sessions of the database count for a caller: one of the default tenant.
    pub(crate) fn serves(caller: &Caller) -> bool {
        caller.tenant == Tenant::default()
    }

    /// Returns the data of the credential.
    async fn open(&self, app: &App, caller: &Caller) -> Result<Arc<SessionCredential>, ApiError> {
        let tenant = &Tenant::default();
        if let Some((data, read)) = &*self.opened()
            && read.elapsed() < CREDENTIAL_TTL
        {
            return Ok(data.clone());
        }
        let asking = Asking {
            who: caller.grantee.to_string(),
            worker: None,
            operation: "session.find",
            execution: None,
            parent: None,
        };
        let credentials = &app.control.credentials;
        // A missing credential is no use of a secret, and strangers would fill the audit with it.
        let opened = match credentials.get(tenant, &self.credential).await {
            Ok(_) => credentials.reveal(tenant, &self.credential, &asking).await,
            Err(error) => Err(error),
        };
        let (found, data) = opened.map_err(|error| {
            tracing::warn!(credential = &*self.credential, %error, "session credential unreadable");
            let message = format!(
                "credential '{}', which {SESSION_CREDENTIAL} names, can't be read in tenant '{}'",
                self.credential,
                tenant.as_str()
            );
            ApiError::unavailable("session_credential_unavailable", message)
        })?;
        let (name, kind) = (found.kept.name, found.kept.kind);
        let data = Arc::new(SessionCredential { name, kind, data });
        *self.opened() = Some((data.clone(), Instant::now()));
        Ok(data)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
