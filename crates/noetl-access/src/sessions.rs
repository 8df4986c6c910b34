//! Sessions that a gateway's login playbook stores in a separate database.
//!
//! A credential describes the database. The operator names the credential, so no caller can make
//! the server connect to a host of the caller's choice.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noetl_model::{Tenant, Timestamp, Value};
use noetl_secrets::{Credentials, SecretRequest};
use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::error::AccessError;

/// Environment variable with the name of the credential, for messages.
pub const SESSION_CREDENTIAL: &str = "NOETL_SESSION_CREDENTIAL";

/// Time for which a decrypted credential is cached. After that it is read, and recorded in the
/// audit, again.
const CREDENTIAL_TTL: Duration = Duration::from_secs(60);

/// Maximum length of a session token that is looked up, in bytes.
const TOKEN_MAX: usize = 1024;

/// A session that is valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// User ID in the session database.
    pub user_id: i32,
    /// Email address, as the login playbook stored it.
    pub email: String,
    /// Name, as the login playbook stored it.
    pub display_name: String,
    /// Roles in the session database. They aren't roles of this control plane.
    pub roles: Vec<String>,
    /// Time at which the session expires.
    pub expires_at: Timestamp,
}

/// Error of a session lookup.
#[derive(Debug, thiserror::Error)]
#[error("failed to look up a session: {0}")]
pub struct SessionLookupError(pub String);

/// Outcome of a lookup: `None` if the session is unknown, expired, or inactive.
pub type SessionLookup = Result<Option<StoredSession>, SessionLookupError>;

pub type SessionFuture<'a> = Pin<Box<dyn Future<Output = SessionLookup> + Send + 'a>>;

/// Decrypted credential of a session database.
pub struct SessionCredential {
    pub name: String,
    /// Type of the credential, such as `postgres`.
    pub kind: String,
    pub data: Value,
}

/// Access to a session database.
pub trait SessionDatabase: Send + Sync {
    /// Looks a session up in the database that a credential describes.
    fn find<'a>(&'a self, credential: &'a SessionCredential, token: &'a str) -> SessionFuture<'a>;
}

/// Cached credential, and the time it was read.
type CachedCredential = Option<(Arc<SessionCredential>, Instant)>;

/// Client of the session database. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    credential: Arc<str>,
    database: Arc<dyn SessionDatabase>,
    opened: Arc<Mutex<CachedCredential>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("credential", &self.credential).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Creates a client that uses the credential of this name in the default tenant. Another tenant
    /// could otherwise make the server connect to a host of its choice.
    pub fn new(credential: &str, database: Arc<dyn SessionDatabase>) -> Self {
        Self { credential: credential.into(), database, opened: Arc::default() }
    }

    /// Returns the name of the credential.
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Returns a valid session, or `None` if it is unknown, expired, or inactive.
    ///
    /// # Errors
    ///
    /// Returns [`AccessError::Unavailable`] if the credential can't be read or the database is
    /// unavailable.
    pub(crate) async fn find(
        &self,
        credentials: &Credentials,
        checks: &Semaphore,
        caller: &Caller,
        token: &str,
    ) -> Result<Option<StoredSession>, AccessError> {
        if token.is_empty() || token.len() > TOKEN_MAX || token.contains('\0') {
            return Ok(None);
        }
        let credential = self.open(credentials, caller).await?;
        // Shares the limit of token checks, because a gateway forwards untrusted text.
        let _check = checks.acquire().await;
        self.database.find(&credential, token).await.map_err(|error| {
            tracing::warn!(credential = &*self.credential, %error, "session lookup failed");
            let message = "the database of sessions is unavailable; the server log has the cause";
            AccessError::unavailable("session_database_unavailable", message)
        })
    }

    /// Returns the actor for audit records: the session's user by ID, and the token that acts for
    /// the user. Names and addresses are untrusted, so they are not included.
    pub(crate) fn actor(&self, session: &StoredSession, token: &str) -> Arc<str> {
        format!("session:{}/{} via {token}", self.credential, session.user_id).into()
    }

    /// Returns `true` if database sessions apply to a caller, which must belong to the default
    /// tenant.
    pub fn serves(caller: &Caller) -> bool {
        caller.tenant == Tenant::default()
    }

    /// Returns the decrypted credential, from the cache if possible.
    async fn open(
        &self,
        credentials: &Credentials,
        caller: &Caller,
    ) -> Result<Arc<SessionCredential>, AccessError> {
        let tenant = &Tenant::default();
        if let Some((data, read)) = &*self.opened()
            && read.elapsed() < CREDENTIAL_TTL
        {
            return Ok(data.clone());
        }
        let asking = SecretRequest {
            who: caller.grantee.to_string(),
            worker: None,
            operation: "session.find",
            execution: None,
            parent: None,
        };
        // A missing credential is not a use of a secret, and untrusted requests must not fill the
        // audit.
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
            AccessError::unavailable("session_credential_unavailable", message)
        })?;
        let (name, kind) = (found.kept.name, found.kept.kind);
        let data = Arc::new(SessionCredential { name, kind, data });
        *self.opened() = Some((data.clone(), Instant::now()));
        Ok(data)
    }

    fn opened(&self) -> MutexGuard<'_, CachedCredential> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
