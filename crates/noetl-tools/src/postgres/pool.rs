//! Connections that outlive a call for a while, so that a loop over thousands of items does not
//! open thousands of them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::Failure;
use tokio::time::Instant;
use tokio_postgres::{CancelToken, Client};

use super::failure::failed;
use super::settings::Settings;
use super::tls::Tls;

/// How long an unused connection is kept: longer than the pause between two items of a loop, short
/// enough not to take a server's places from others.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// How many unused connections are kept in all. A worker runs about this many steps at a time.
const KEPT_MAX: usize = 32;

/// How long a server may take to stop a statement before the connection is given up.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How long a server may take to forget what a call left in its session.
const RESET_PATIENCE: Duration = Duration::from_secs(5);

/// Unused connections, the oldest first.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<VecDeque<Idle>>>);

struct Idle {
    settings: Settings,
    client: Client,
    tls: Tls,
    since: Instant,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({})", self.lock().len())
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        // Every change is one call of the queue's own, so a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that answers, and has run `opening`.
    ///
    /// One from the pool may have died unnoticed; a call that has done nothing yet is safe to go
    /// on with another.
    pub(crate) async fn session(
        &self,
        settings: &Settings,
        opening: &str,
    ) -> Result<Session, Failure> {
        if let Some(session) = self.take(settings) {
            match session.client().batch_execute(opening).await {
                Ok(()) => return Ok(session),
                Err(_) if session.client().is_closed() => {}
                Err(error) => return Err(session.failed(&error, None)),
            }
        }
        let session = self.connect(settings).await?;
        let opened = session.client().batch_execute(opening).await;
        opened.map_err(|error| session.failed(&error, None))?;
        Ok(session)
    }

    /// A connection of these settings that was used before, if one is left.
    fn take(&self, settings: &Settings) -> Option<Session> {
        let mut idle = self.lock();
        let found =
            idle.iter().rposition(|kept| kept.settings == *settings && !kept.client.is_closed())?;
        let kept = idle.remove(found)?;
        drop(idle);
        Some(Session::new(self, kept.settings, kept.client, kept.tls))
    }

    /// A connection of its own for these settings.
    async fn connect(&self, settings: &Settings) -> Result<Session, Failure> {
        let tls = Tls::new(settings.verify, settings.root_cert.as_deref())?;
        let connecting = settings.config.connect(tls.clone());
        let (client, connection) =
            connecting.await.map_err(|error| failed(&error, &settings.address(), None))?;
        // Ends when the client is dropped. Its error is also the error of what the client asked.
        tokio::spawn(connection);
        let _ = client.batch_execute(NOTICE_ABSENCE).await;
        Ok(Session::new(self, settings.clone(), client, tls))
    }

    fn put(&self, settings: Settings, client: Client, tls: Tls) {
        let since = Instant::now();
        let mut idle = self.lock();
        idle.push_back(Idle { settings, client, tls, since });
        if idle.len() > KEPT_MAX {
            idle.pop_front();
        }
        drop(idle);
        let pool = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep_until(since + IDLE_MAX).await;
            if let Some(pool) = pool.upgrade().map(Pool) {
                pool.lock().retain(|kept| kept.since > since && !kept.client.is_closed());
            }
        });
    }
}

/// Lets a server notice a worker that died and stop its statement. Servers before version 14 do
/// not know it and are left as they are.
const NOTICE_ABSENCE: &str = "set client_connection_check_interval = '5s'";

/// A connection in the hands of one call.
///
/// Dropped while a statement runs, it cancels the statement.
pub(crate) struct Session {
    pool: Pool,
    settings: Settings,
    tls: Option<Tls>,
    client: Option<Client>,
    /// Whether a statement may be running.
    is_busy: bool,
}

impl Session {
    fn new(pool: &Pool, settings: Settings, client: Client, tls: Tls) -> Self {
        let pool = pool.clone();
        Self { pool, settings, tls: Some(tls), client: Some(client), is_busy: true }
    }

    pub(crate) fn client(&self) -> &Client {
        self.client.as_ref().expect("the client leaves only with its session")
    }

    pub(crate) fn address(&self) -> String {
        self.settings.address()
    }

    /// The failure an error of this session stands for.
    pub(crate) fn failed(&self, error: &tokio_postgres::Error, place: Option<usize>) -> Failure {
        failed(error, &self.address(), place)
    }

    /// Gives the connection back once nothing of the call is left in it.
    ///
    /// Whatever is open is rolled back, and settings, temporary tables and locks go, so that the
    /// next call finds a connection as good as new.
    pub(crate) fn release(mut self) {
        self.is_busy = false;
        let (Some(client), Some(tls)) = (self.client.take(), self.tls.take()) else { return };
        let (pool, settings) = (self.pool.clone(), self.settings.clone());
        tokio::spawn(async move {
            let reset = async {
                client.batch_execute("rollback").await?;
                client.batch_execute("discard all").await?;
                client.clear_type_cache();
                let _ = client.batch_execute(NOTICE_ABSENCE).await;
                Ok::<_, tokio_postgres::Error>(())
            };
            if let Ok(Ok(())) = tokio::time::timeout(RESET_PATIENCE, reset).await {
                pool.put(settings, client, tls);
            }
        });
    }

    /// Stops what runs and gives the connection up.
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

/// A way to stop whatever a call's sessions are doing, from outside the work itself.
#[derive(Clone, Default)]
pub(crate) struct Stopper(Arc<Mutex<Vec<(CancelToken, Tls)>>>);

impl Stopper {
    /// Notes a session that is to be stopped with the rest.
    pub(crate) fn watch(&self, session: &Session) {
        if let (Some(client), Some(tls)) = (&session.client, &session.tls) {
            let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watched.push((client.cancel_token(), tls.clone()));
        }
    }

    /// Cancels the running statements and waits until `work` has come to its end, or until it is
    /// clear that the server does not answer.
    pub(crate) async fn stop<T>(&self, mut work: Pin<Box<impl Future<Output = T>>>) {
        let stopping = async {
            if self.cancel().await {
                (&mut work).await;
            }
        };
        let _ = tokio::time::timeout(STOP_PATIENCE, stopping).await;
    }

    /// Cancels the running statements; whether there were connections to run any.
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
