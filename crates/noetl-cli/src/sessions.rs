//! Configures the database of the sessions that a gateway validates, from the environment.

use std::sync::Arc;

use noetl_model::Value;
use noetl_server::{
    SESSION_CREDENTIAL, SessionCredential, SessionDatabase, SessionFuture, SessionLookupError,
    Sessions, StoredSession,
};
use noetl_tools::{GatewaySession, GatewaySessions, ToolCredential};

use crate::settings::setting;

/// Returns the session database if `NOETL_SESSION_CREDENTIAL` names its credential.
pub(crate) fn from_environment() -> Option<Sessions> {
    let credential = setting(SESSION_CREDENTIAL)?;
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
            let found = self.0.find(&ToolCredential { name, kind, data }, token).await;
            let found = found.map_err(|failure| SessionLookupError(failure.message))?;
            Ok(found.map(stored))
        })
    }
}

fn stored(session: GatewaySession) -> StoredSession {
    let GatewaySession { user_id, email, display_name, roles, expires_at } = session;
    StoredSession { user_id, email, display_name, roles, expires_at }
}
