//! Opens a database, and interrupts its statements on request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duckdb::{AccessMode, Config, Connection};
use noetl_model::{Failure, FailureKind, Map};

use crate::config;
use crate::own::FileGuard;
use crate::sql::{DatabaseFile, StopFlag};

/// Interval of checks for a stop request.
const LOOK: Duration = Duration::from_millis(50);

/// Default memory limit of a database: enough for one step, and low enough for several in parallel.
/// Beyond it DuckDB uses temporary files.
const MEMORY_DEFAULT: &str = "1GB";

/// Location of a database, and options for opening it.
#[derive(Debug, Clone)]
pub(crate) struct DuckdbLocation {
    file: DatabaseFile,
    memory: String,
}

impl DuckdbLocation {
    pub(crate) fn read(settings: &Map) -> Result<Self, Failure> {
        let file = DatabaseFile::read(settings)?;
        let memory = config::text(settings, "memory_limit")?.unwrap_or(MEMORY_DEFAULT).to_owned();
        Ok(Self { file, memory })
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_in_memory()
    }
}

/// An open database. Raising its `stop` interrupts the running statement.
pub(crate) struct OpenDatabase {
    pub(crate) connection: Connection,
    is_over: Arc<AtomicBool>,
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Opens the database. Must be called on a thread of the runtime that may block.
pub(crate) fn open(
    location: &DuckdbLocation,
    guard: &FileGuard,
    stop: &StopFlag,
) -> Result<OpenDatabase, Failure> {
    let file = &location.file;
    if let Some(path) = &file.path {
        guard.check(Path::new(path), !file.read_only)?;
    }
    let refused = |error: duckdb::Error| {
        let place = file.path.as_deref().unwrap_or("a database in memory");
        Failure::new(FailureKind::Config, format!("{place} cannot be opened: {error}"))
    };
    let mut settings = Config::default().max_memory(&location.memory).map_err(refused)?;
    if file.read_only && !file.is_in_memory() {
        settings = settings.access_mode(AccessMode::ReadOnly).map_err(refused)?;
    }
    let connection = match &file.path {
        None => Connection::open_in_memory_with_flags(settings),
        Some(path) => Connection::open_with_flags(path, settings),
    };
    let connection = connection.map_err(refused)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let interrupt = connection.interrupt_handle();
    let (stop, over) = (stop.clone(), Arc::clone(&is_over));
    tokio::runtime::Handle::current().spawn(async move {
        while !over.load(Ordering::Relaxed) {
            if stop.is_raised() {
                // Repeated, because an interrupt between two statements has no effect.
                interrupt.interrupt();
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    Ok(OpenDatabase { connection, is_over })
}
