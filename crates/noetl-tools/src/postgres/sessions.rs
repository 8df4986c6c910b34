//! Sessions in the tables of a gateway's login playbook.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Failure, FailureKind, Map, Timestamp};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use super::dedicated::{NotifyHandling, connect_postgres};
use crate::{ToolCredential, auth};

/// Timeout of a lookup, including the time to connect.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Selects the valid session of a token. Expiration times are compared with the database's clock.
const FIND: &str = "select u.user_id::int4, u.email::text, coalesce(u.display_name, u.email)::text,
       (extract(epoch from s.expires_at::timestamptz) * 1000000)::int8,
       array(select r.role_name::text
               from auth.user_roles held join auth.roles r on r.role_id = held.role_id
              where held.user_id = u.user_id
                and (held.expires_at is null or held.expires_at > now())
              order by 1)
  from auth.sessions s join auth.users u on u.user_id = s.user_id
 where s.session_token = $1::text and s.is_active and u.is_active and s.expires_at > now()";

/// A valid session of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySession {
    pub user_id: i32,
    pub email: String,
    /// Name of the user. Equal to the email address if the user has none.
    pub display_name: String,
    /// Roles of the user in the gateway's tables.
    pub roles: Vec<String>,
    /// Time at which the session expires.
    pub expires_at: Timestamp,
}

/// Looks up sessions over one connection, which stays open between calls.
#[derive(Default)]
pub struct GatewaySessions {
    connection: Mutex<Option<(Map, Arc<Client>)>>,
}

impl GatewaySessions {
    /// Returns the session with this token in the database of a credential, or `None` if it is
    /// unknown, expired, or inactive.
    ///
    /// # Errors
    ///
    /// Returns a `config` failure if the credential doesn't describe a Postgres database, and
    /// otherwise the failure of the lookup.
    pub async fn find(
        &self,
        credential: &ToolCredential,
        token: &str,
    ) -> Result<Option<GatewaySession>, Failure> {
        let mut settings = Map::new();
        auth::inject("postgres", &mut settings, credential)?;
        let asked = async {
            let client = self.connect(settings).await?;
            let row =
                client.query_opt(FIND, &[&token]).await.map_err(|error| unanswered(&error))?;
            row.map(|row| session(&row).map_err(|error| unanswered(&error))).transpose()
        };
        let Ok(outcome) = tokio::time::timeout(TIMEOUT, asked).await else {
            self.disconnect();
            let message = format!("the database of sessions did not respond in {TIMEOUT:?}");
            return Err(Failure::new(FailureKind::Timeout, message));
        };
        outcome
    }

    /// Drops a connection that may be dead, unless another call is connecting.
    fn disconnect(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }

    async fn connect(&self, settings: Map) -> Result<Arc<Client>, Failure> {
        let mut connection = self.connection.lock().await;
        if let Some((known, client)) = &*connection
            && *known == settings
            && !client.is_closed()
        {
            return Ok(client.clone());
        }
        let client = Arc::new(connect_postgres(&settings, NotifyHandling::Ignored).await?);
        *connection = Some((settings, client.clone()));
        Ok(client)
    }
}

fn session(row: &tokio_postgres::Row) -> Result<GatewaySession, tokio_postgres::Error> {
    Ok(GatewaySession {
        user_id: row.try_get(0)?,
        email: row.try_get(1)?,
        display_name: row.try_get(2)?,
        expires_at: Timestamp::from_micros(row.try_get(3)?),
        roles: row.try_get(4)?,
    })
}

fn unanswered(error: &tokio_postgres::Error) -> Failure {
    let message = match error.as_db_error() {
        Some(refused) => format!("the database of sessions says: {}", refused.message()),
        None => format!("the database of sessions is unavailable: {error}"),
    };
    Failure::new(FailureKind::Connection, message)
}
