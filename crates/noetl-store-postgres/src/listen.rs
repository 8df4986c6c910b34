//! Receives notifications of other processes through the database.
//!
//! One connection listens. It must not go through a transaction-pooling proxy, which would share it
//! with other clients. A probe that the process sends to itself tests once whether notifications
//! arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::{debug, warn};

/// Postgres channel of all notifications.
pub(crate) const CHANNEL: &str = "noetl";

/// Time limit for the arrival of the probe.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// Warning if notifications don't arrive.
const DEAF: &str = "other processes are not heard through this database URL; \
     give one past the proxy in NOETL_DATABASE_DIRECT_URL";

/// Time between two attempts to listen.
const REST: Duration = Duration::from_secs(10);

/// Listener for notifications of other processes. Dropping it stops listening.
#[derive(Debug)]
pub(crate) struct NotifyListener {
    /// Name of this process in notifications, so that it ignores its own.
    name: String,
    heard: Arc<Notify>,
    hears: Arc<AtomicBool>,
    task: AbortHandle,
}

impl NotifyListener {
    /// Starts to listen in the background. Without connection options, no notifications are
    /// received.
    pub(crate) fn open(listen_on: Option<PgConnectOptions>, say_on: PgPool, name: String) -> Self {
        let (heard, hears) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (own, heard_too, hears_too) = (name.clone(), heard.clone(), hears.clone());
        let listening = async move {
            match listen_on {
                Some(place) => listen(place, say_on, own, heard_too, hears_too).await,
                None => warn!("{DEAF}"),
            }
        };
        let task = tokio::spawn(listening).abort_handle();
        Self { name, heard, hears, task }
    }

    /// Returns the notification payload that makes other processes look for pending commands.
    pub(crate) fn work_left(&self) -> String {
        format!("work {}", self.name)
    }

    /// Waits until another process reports pending commands.
    pub(crate) async fn others_left_work(&self) {
        self.heard.notified().await;
    }

    /// Returns `true` if notifications are received.
    pub(crate) fn hears(&self) -> bool {
        self.hears.load(Ordering::Relaxed)
    }
}

impl Drop for NotifyListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(
    listen_on: PgConnectOptions,
    say_on: PgPool,
    name: String,
    heard: Arc<Notify>,
    hears: Arc<AtomicBool>,
) {
    loop {
        let ended = hear(&listen_on, &say_on, &name, &heard, &hears).await;
        hears.store(false, Ordering::Relaxed);
        if let Err(error) = ended {
            debug!(%error, "notification listener failed, retrying");
        }
        tokio::time::sleep(REST).await;
    }
}

async fn hear(
    listen_on: &PgConnectOptions,
    say_on: &PgPool,
    name: &str,
    heard: &Notify,
    hears: &AtomicBool,
) -> Result<(), sqlx::Error> {
    // Use a separate pool with one connection that never expires, because the listener keeps it.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_with(listen_on.clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    let probe = format!("probe {name}");
    let said = sqlx::query("select pg_notify($1, $2)").bind(CHANNEL).bind(&probe);
    let mut transaction = say_on.begin().await?;
    said.persistent(false).execute(&mut *transaction).await?;
    transaction.commit().await?;
    let arrived = tokio::time::timeout(PROBE_MAX, async {
        loop {
            match listener.try_recv().await? {
                Some(word) if word.payload() == probe => return Ok::<_, sqlx::Error>(true),
                Some(_) => {}
                None => return Ok(false),
            }
        }
    });
    if !arrived.await.is_ok_and(|arrived| matches!(arrived, Ok(true))) {
        warn!("{DEAF}");
        // Only a different configuration can change this.
        std::future::pending::<()>().await;
    }
    hears.store(true, Ordering::Relaxed);
    // Earlier notifications were missed, so wake up once.
    heard.notify_one();
    let own = format!("work {name}");
    while let Some(word) = listener.try_recv().await? {
        let word = word.payload();
        if word.starts_with("work ") && word != own {
            heard.notify_one();
        }
    }
    Ok(())
}
