//! Configures the database of the sessions that a gateway validates.

use std::sync::Arc;

use noetl_config::tree::Server;
use noetl_model::Value;
use noetl_server::{
    SessionCredential, SessionDatabase, SessionFuture, SessionLookupError, Sessions, StoredSession,
};
use noetl_tools::{GatewaySession, GatewaySessions, ToolCredential};

/// Returns the session database, if its credential is configured.
pub(crate) fn configured(server: &Server) -> Option<Sessions> {
    let credential = server.session_credential.as_deref()?;
    Some(Sessions::new(credential.trim(), Arc::<Tables>::default()))
}

/// Postgres tables of the published login playbooks.
#[derive(Default)]
struct Tables(GatewaySessions);

impl SessionDatabase for Tables {
    fn find<'a>(&'a self, credential: &'a SessionCredential, token: &'a str) -> SessionFuture<'a> {
        Box::pin(async move {
            let SessionCredential { name, kind, data } = credential;
            let Value::Object(data) = data else {
                let message = format!("the data of credential '{name}' is not an object");
                return Err(SessionLookupError(message));
            };
            let (name, kind, data) = (name.clone(), kind.clone(), data.clone());
            let session = self.0.find(&ToolCredential { name, kind, data }, token).await;
            let session = session.map_err(|failure| SessionLookupError(failure.message))?;
            Ok(session.map(stored))
        })
    }
}

fn stored(session: GatewaySession) -> StoredSession {
    let GatewaySession { user_id, email, display_name, roles, expires_at } = session;
    StoredSession { user_id, email, display_name, roles, expires_at }
}
