//! Hears what other processes say through the database.
//!
//! One connection listens; it must not go through a proxy that pools by transaction, which would
//! hand it to others. Whether anything is heard at all is tried once, by a word to oneself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::{debug, warn};

/// The one channel everything is said on.
pub(crate) const CHANNEL: &str = "noetl";

/// How long a word to oneself may take to arrive.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// What to say when nothing can be heard.
const DEAF: &str = "other processes are not heard through this database URL; \
     give one past the proxy in NOETL_DATABASE_DIRECT_URL";

/// How long to rest before listening is tried again.
const REST: Duration = Duration::from_secs(10);

/// What is heard. Listening ends with this.
#[derive(Debug)]
pub(crate) struct Ears {
    /// What this process signs with, so that it does not wake itself.
    name: String,
    heard: Arc<Notify>,
    hears: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Ears {
    /// Listens there; without a place to listen on nothing is heard.
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

    /// What to say so that others look for work.
    pub(crate) fn work_left(&self) -> String {
        format!("work {}", self.name)
    }

    /// Resolves when another process left work.
    pub(crate) async fn others_left_work(&self) {
        self.heard.notified().await;
    }

    /// Whether anything would be heard at all.
    pub(crate) fn hears(&self) -> bool {
        self.hears.load(Ordering::Relaxed)
    }
}

impl Drop for Ears {
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
            debug!(%error, "nothing is heard from other processes for now");
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
    // A pool of its own, of one connection that is kept: a listener takes it for good.
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
        // Nothing will change that by itself.
        std::future::pending::<()>().await;
    }
    hears.store(true, Ordering::Relaxed);
    // What was said before was not heard.
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
