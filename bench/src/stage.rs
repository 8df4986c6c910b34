//! A control plane with a worker on a store, for one measurement.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{Control, Options};
use noetl_store::{MemoryStore, Store, SystemClock};
use noetl_store_sqlite::{self as sqlite, SqliteStore};
use noetl_tools::{Noop, Registry};
use noetl_worker::Worker;
use tempfile::TempDir;

/// Which store to measure on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// The memory store.
    Memory,
    /// SQLite in a file, fully durable.
    Sqlite,
}

impl StoreKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }
}

/// A control plane with a worker.
pub(crate) struct Stage {
    pub(crate) control: Arc<Control>,
    pub(crate) store: Arc<dyn Store>,
    sqlite: Option<(Arc<SqliteStore>, TempDir)>,
    worker: tokio::task::JoinHandle<()>,
}

impl Stage {
    pub(crate) async fn open(
        kind: StoreKind,
        slots: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let (store, sqlite): (Arc<dyn Store>, _) = match kind {
            StoreKind::Memory => (Arc::new(MemoryStore::new()), None),
            StoreKind::Sqlite => {
                // Beside the build, not in a temporary directory that may be in memory.
                let directory = tempfile::tempdir_in(".")?;
                let file = directory.path().join("bench.db");
                let store = Arc::new(SqliteStore::open(sqlite::Options::file(file))?);
                (store.clone(), Some((store, directory)))
            }
        };
        let options = Options { slots, ..Options::default() };
        let control = Control::open(options, store.clone(), Arc::new(SystemClock)).await?;
        let control = Arc::new(control);
        let worker = Worker::new(control.local.clone(), Registry::default().with(Noop));
        let worker = tokio::spawn(worker.run(Duration::from_secs(1)));
        Ok(Self { control, store, sqlite, worker })
    }

    /// Bytes of the database so far; none in memory.
    pub(crate) async fn bytes(&self) -> Result<Option<u64>, Box<dyn std::error::Error>> {
        match &self.sqlite {
            Some((store, _)) => Ok(Some(store.stats().await?.database_bytes)),
            None => Ok(None),
        }
    }

    pub(crate) async fn close(self) {
        self.control.drain();
        let _ = self.worker.await;
        self.control.close().await;
    }
}
