//! Connection pool. Connections outlive a call for a while, so that a loop over thousands of items
//! doesn't open thousands of them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use noetl_model::Failure;
use tokio::time::Instant;
use tokio_postgres::{CancelToken, Client};

use super::failure::failed;
use super::settings::PostgresSettings;
use super::tls::Tls;

/// Time after which an unused connection is closed: longer than the pause between two items of a
/// loop, and short enough not to exhaust the server's connections.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Maximum unused connections. A worker runs about this many steps at a time.
const KEPT_MAX: usize = 32;

/// Time that the server has to cancel a statement before the connection is closed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Time that the server has to reset a session.
const RESET_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<IdleConnections>>);

#[derive(Default)]
struct IdleConnections {
    idle: VecDeque<Idle>,
    /// Whether a task that closes expired connections is running.
    is_attended: bool,
}

struct Idle {
    settings: PostgresSettings,
    client: Client,
    tls: Tls,
    since: Instant,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({})", self.lock().idle.len())
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, IdleConnections> {
        // Every change is a single operation of the queue, so it is consistent even if the lock is
        // poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a working connection that has run `opening`.
    ///
    /// A pooled connection may have failed unnoticed. The call has done no work yet, so it can
    /// safely continue with another one.
    pub(crate) async fn session(
        &self,
        settings: &PostgresSettings,
        opening: &str,
    ) -> Result<Session, Failure> {
        while let Some(session) = self.take(settings) {
            if session.client().batch_execute(opening).await.is_ok() {
                return Ok(session);
            }
        }
        let session = self.connect(settings).await?;
        let opened = session.client().batch_execute(opening).await;
        opened.map_err(|error| session.failed(&error, None))?;
        Ok(session)
    }

    /// Removes an unused connection with these settings from the pool.
    fn take(&self, settings: &PostgresSettings) -> Option<Session> {
        let mut connections = self.lock();
        let fits = |idle: &Idle| idle.settings == *settings && !idle.client.is_closed();
        let index = connections.idle.iter().rposition(fits)?;
        let idle = connections.idle.remove(index)?;
        Some(Session::new(self, idle.settings, idle.client, idle.tls))
    }

    /// Opens a connection with these settings.
    async fn connect(&self, settings: &PostgresSettings) -> Result<Session, Failure> {
        let tls = Tls::new(settings.verify, settings.root_cert.as_deref())?;
        let connecting = settings.config.connect(tls.clone());
        let (client, connection) =
            connecting.await.map_err(|error| failed(&error, &settings.address(), None))?;
        // Ends when the client is dropped. The client's pending requests also report the error.
        tokio::spawn(connection);
        let _ = client.batch_execute(NOTICE_ABSENCE).await;
        Ok(Session::new(self, settings.clone(), client, tls))
    }

    fn put(&self, settings: PostgresSettings, client: Client, tls: Tls) {
        let mut connections = self.lock();
        connections.idle.push_back(Idle { settings, client, tls, since: Instant::now() });
        if connections.idle.len() > KEPT_MAX {
            connections.idle.pop_front();
        }
        if !std::mem::replace(&mut connections.is_attended, true) {
            tokio::spawn(attend(Arc::downgrade(&self.0)));
        }
    }
}

/// Closes connections that are unused for [`IDLE_MAX`], until none is left.
async fn attend(pool: Weak<Mutex<IdleConnections>>) {
    loop {
        let next = {
            let Some(pool) = pool.upgrade().map(Pool) else { return };
            let mut connections = pool.lock();
            connections
                .idle
                .retain(|idle| idle.since.elapsed() < IDLE_MAX && !idle.client.is_closed());
            match connections.idle.front() {
                Some(oldest) => oldest.since + IDLE_MAX,
                None => {
                    connections.is_attended = false;
                    return;
                }
            }
        };
        tokio::time::sleep_until(next).await;
    }
}

/// Resets a session. `discard all` would also remove the statements that the driver itself has
/// prepared and continues to use.
const FORGET: &str = "close all; set session authorization default; reset all; unlisten *; \
    do $$ declare own text; begin \
      perform pg_advisory_unlock_all(); \
      for own in select name from pg_prepared_statements where from_sql loop \
        execute format('deallocate %I', own); \
      end loop; \
    end $$; \
    discard sequences; discard temp";

/// Makes the server detect a dead worker and cancel its statement. Servers before version 14 don't
/// support the setting and stay unchanged.
const NOTICE_ABSENCE: &str = "set client_connection_check_interval = '5s'";

/// A connection in use by one call.
///
/// Dropping it while a statement runs cancels the statement.
pub(crate) struct Session {
    pool: Pool,
    settings: PostgresSettings,
    tls: Option<Tls>,
    client: Option<Client>,
    /// Whether a statement may be running.
    is_busy: bool,
}

impl Session {
    fn new(pool: &Pool, settings: PostgresSettings, client: Client, tls: Tls) -> Self {
        let pool = pool.clone();
        Self { pool, settings, tls: Some(tls), client: Some(client), is_busy: true }
    }

    pub(crate) fn client(&self) -> &Client {
        self.client.as_ref().expect("the client leaves only with its session")
    }

    pub(crate) fn address(&self) -> String {
        self.settings.address()
    }

    /// Converts an error of this session to a failure.
    pub(crate) fn failed(&self, error: &tokio_postgres::Error, place: Option<usize>) -> Failure {
        failed(error, &self.address(), place)
    }

    /// Resets the connection in the background and returns it to the pool.
    ///
    /// The reset rolls back an open transaction and removes settings, temporary tables, and locks,
    /// so that the next call gets a clean session.
    pub(crate) fn release(mut self) {
        self.is_busy = false;
        let (Some(client), Some(tls)) = (self.client.take(), self.tls.take()) else { return };
        let (pool, settings) = (self.pool.clone(), self.settings.clone());
        tokio::spawn(async move {
            let reset = async {
                client.batch_execute("rollback").await?;
                client.batch_execute(FORGET).await?;
                client.clear_type_cache();
                let _ = client.batch_execute(NOTICE_ABSENCE).await;
                Ok::<_, tokio_postgres::Error>(())
            };
            if let Ok(Ok(())) = tokio::time::timeout(RESET_PATIENCE, reset).await {
                pool.put(settings, client, tls);
            }
        });
    }

    /// Cancels the running statement and closes the connection.
    pub(crate) async fn abandon(mut self) {
        self.is_busy = false;
        if let (Some(client), Some(tls)) = (&self.client, self.tls.take()) {
            let token = client.cancel_token();
            let _ = tokio::time::timeout(STOP_PATIENCE, token.cancel_query(tls)).await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let (true, Some(client), Some(tls)) = (self.is_busy, &self.client, self.tls.take())
            && !client.is_closed()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let token = client.cancel_token();
            runtime.spawn(async move {
                let _ = tokio::time::timeout(STOP_PATIENCE, token.cancel_query(tls)).await;
            });
        }
    }
}

/// Handle that cancels the statements of all sessions of a call.
#[derive(Clone, Default)]
pub(crate) struct Stopper(Arc<Mutex<Vec<(CancelToken, Tls)>>>);

impl Stopper {
    /// Registers a session for cancellation.
    pub(crate) fn watch(&self, session: &Session) {
        if let (Some(client), Some(tls)) = (&session.client, &session.tls) {
            let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watched.push((client.cancel_token(), tls.clone()));
        }
    }

    /// Cancels the running statements and waits until `work` ends, for at most [`STOP_PATIENCE`].
    pub(crate) async fn stop<T>(&self, mut work: Pin<Box<impl Future<Output = T>>>) {
        let stopping = async {
            if self.cancel().await {
                (&mut work).await;
            }
        };
        let _ = tokio::time::timeout(STOP_PATIENCE, stopping).await;
    }

    /// Cancels the running statements. Returns `true` if any session was registered.
    pub(crate) async fn cancel(&self) -> bool {
        let watched = {
            let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *watched)
        };
        let is_any = !watched.is_empty();
        for (token, tls) in watched {
            let _ = token.cancel_query(tls).await;
        }
        is_any
    }
}
