//! A control plane with a worker on a store, for one measurement.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_bus_nats::{Address, NatsStream};
use noetl_control::{ControlPlane, Options};
use noetl_local::Worker;
use noetl_model::Clock;
use noetl_publishing::{PublisherHandle, PublisherOptions};
use noetl_store::{MemoryStore, Store, SystemClock};
use noetl_store_postgres::{self as postgres, PostgresStore};
use noetl_store_sqlite::{self as sqlite, SqliteStore};
use noetl_tools::{Noop, ToolRegistry};
use tempfile::TempDir;

/// Where to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The memory store.
    Memory,
    /// SQLite in a new file, fully durable.
    Sqlite,
    /// A database of a private server, fully durable.
    Postgres(String),
    /// The same, with every event published to a private NATS meanwhile.
    PostgresNats {
        /// The database.
        database: String,
        /// The bus.
        nats: String,
    },
}

impl Medium {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::PostgresNats { .. } => "postgres+nats",
        }
    }

    /// The URL of its database, where it has one.
    pub(crate) fn database(&self) -> Option<&str> {
        match self {
            Self::Memory | Self::Sqlite => None,
            Self::Postgres(database) | Self::PostgresNats { database, .. } => Some(database),
        }
    }
}

/// A store that is open, and what has to outlive it.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    sqlite: Option<Arc<SqliteStore>>,
    /// Where events are published, if they are.
    nats: Option<String>,
    /// Beside the build, not in a temporary directory that may be in memory.
    directory: Option<TempDir>,
}

impl Place {
    pub(crate) async fn open(medium: &Medium) -> Result<Self, Box<dyn std::error::Error>> {
        match medium {
            Medium::Memory => {
                let store = Arc::new(MemoryStore::new());
                Ok(Self { store, sqlite: None, nats: None, directory: None })
            }
            Medium::Sqlite => Self::again(tempfile::tempdir_in(".")?),
            Medium::Postgres(database) => Self::on_postgres(database, None).await,
            Medium::PostgresNats { database, nats } => {
                Self::on_postgres(database, Some(nats.clone())).await
            }
        }
    }

    async fn on_postgres(
        database: &str,
        nats: Option<String>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let store = PostgresStore::open(postgres::Options::new(database)?).await?;
        Ok(Self { store: Arc::new(store), sqlite: None, nats, directory: None })
    }

    /// The store of a directory that was closed before.
    pub(crate) fn again(directory: TempDir) -> Result<Self, Box<dyn std::error::Error>> {
        let options = sqlite::Options::file(directory.path().join("bench.db"));
        let store = Arc::new(SqliteStore::open(options)?);
        Ok(Self {
            store: store.clone(),
            sqlite: Some(store),
            nats: None,
            directory: Some(directory),
        })
    }

    /// Closes the store and opens it again, with nothing in memory.
    pub(crate) async fn reopen(self, medium: &Medium) -> Result<Self, Box<dyn std::error::Error>> {
        let (directory, _) = self.close().await;
        match directory {
            Some(directory) => Self::again(directory),
            None => Self::open(medium).await,
        }
    }

    /// Closes the store; returns its directory and file.
    pub(crate) async fn close(self) -> (Option<TempDir>, Option<PathBuf>) {
        let Self { store, sqlite, directory, .. } = self;
        drop(store);
        if let Some(store) = sqlite.and_then(Arc::into_inner) {
            store.close().await;
        }
        let file = directory.as_ref().map(|directory| directory.path().join("bench.db"));
        (directory, file)
    }

    /// Bytes of the database so far, where they are measured.
    pub(crate) async fn bytes(&self) -> Result<Option<u64>, Box<dyn std::error::Error>> {
        match &self.sqlite {
            Some(store) => Ok(Some(store.stats().await?.database_bytes)),
            None => Ok(None),
        }
    }
}

/// A control plane with a worker.
pub(crate) struct Stage {
    pub(crate) control: Arc<ControlPlane>,
    pub(crate) place: Place,
    worker: tokio::task::JoinHandle<()>,
    publishing: Option<PublisherHandle>,
}

impl Stage {
    pub(crate) async fn open(
        medium: &Medium,
        slots: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        Self::on(Place::open(medium).await?, slots).await
    }

    pub(crate) async fn on(place: Place, slots: usize) -> Result<Self, Box<dyn std::error::Error>> {
        Self::with(place, slots, ToolRegistry::default().with(Noop)).await
    }

    /// With these tools.
    pub(crate) async fn with(
        place: Place,
        slots: usize,
        tools: ToolRegistry,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let options = Options { slots, ..Options::default() };
        let control =
            ControlPlane::open(options, place.store.clone(), Arc::new(SystemClock)).await?;
        let control = Arc::new(control);
        let worker = Worker::new(control.journal.local.clone(), tools);
        let worker = tokio::spawn(worker.run(Duration::from_secs(1)));
        let publishing = match &place.nats {
            Some(nats) => Some(publish(nats, &place.store, &control).await?),
            None => None,
        };
        Ok(Self { control, place, worker, publishing })
    }

    /// Closes it with what still runs left behind.
    pub(crate) async fn abandon(self) {
        self.worker.abort();
        if let Some(publishing) = self.publishing {
            publishing.close().await;
        }
        self.control.close().await;
        drop(self.place.close().await);
    }

    pub(crate) async fn close(self) -> Place {
        self.control.drain();
        let _ = self.worker.await;
        if let Some(publishing) = self.publishing {
            publishing.close().await;
        }
        self.control.close().await;
        self.place
    }
}

/// Publishes every event of a store from now on.
async fn publish(
    nats: &str,
    store: &Arc<dyn Store>,
    control: &ControlPlane,
) -> Result<PublisherHandle, Box<dyn std::error::Error>> {
    let bus: Arc<dyn EventStream> = Arc::new(NatsStream::open(Address::parse(nats)?));
    tokio::time::timeout(Duration::from_secs(10), bus.connected()).await?;
    let databases = vec![("database".to_owned(), store.clone() as _)];
    let (clock, commits): (Arc<dyn Clock>, _) =
        (Arc::new(SystemClock), control.journal.watch.commits());
    let options = PublisherOptions::default();
    Ok(PublisherHandle::tail(&options, databases, &bus, &commits, &clock, &control.journal.metrics))
}
