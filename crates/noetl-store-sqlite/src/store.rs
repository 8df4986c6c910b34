//! The store itself: one writer, a few readers, one lock.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use noetl_model::Clock;
use noetl_store::StoreError;
use rusqlite::Connection;

use crate::checkpoint::{Checkpoints, PAGES_MAX};
use crate::error::store_error;
use crate::lock::LockFile;
use crate::open::{self, Opened};
use crate::readers::Readers;
use crate::writer::Writer;
use crate::{Location, OpenError, Options};

/// A store in a SQLite file, or in memory.
///
/// Dropping it finishes what is queued, copies the write-ahead log into the file and gives the file
/// back, which blocks for as long as that takes; [`SqliteStore::close`] does not block its thread.
pub struct SqliteStore {
    /// Present until the store is closed.
    writer: Option<Writer>,
    /// None in memory: there the writer reads, because no other connection can.
    readers: Option<Arc<Readers>>,
    file: Option<OpenFile>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("file", &self.file).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    lock: LockFile,
}

/// How large a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of the database, with pages that are free for use.
    pub database_bytes: u64,
    /// Bytes of the file of the write-ahead log, with what was copied already.
    pub log_bytes: u64,
}

impl SqliteStore {
    /// Opens a store, and makes it when there is none. Blocks while it does.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let clock = options.clock;
        let Location::File(path) = options.location else {
            let connection = open::open_memory()?;
            let writer = start(connection, None, PathBuf::from(":memory:"))?;
            return Ok(Self { writer: Some(writer), readers: None, file: None, clock });
        };
        let Opened { mut connection, lock } = open::open_file(&path, options.synchronous)?;
        let failed = |error| OpenError::from_driver(&path, error);
        let readers = Readers::open(&path, options.readers).map_err(failed)?;
        let checkpoints =
            Checkpoints::start(&mut connection, &path, options.synchronous, PAGES_MAX);
        let writer = start(connection, Some(checkpoints.map_err(failed)?), path.clone())?;
        Ok(Self {
            writer: Some(writer),
            readers: Some(Arc::new(readers)),
            file: Some(OpenFile { path, lock }),
            clock,
        })
    }

    /// Closes the store and returns when the file is free for another owner.
    pub async fn close(self) {
        // The blocking part is the drop; a runtime that is shutting down drops it all the same.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// How large the store is.
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let sql = "select page_count * page_size from pragma_page_count, pragma_page_size";
        let bytes = self.read("measure the database", move |connection| {
            connection.query_row(sql, [], |row| crate::column::count(row, 0))
        });
        let database_bytes = bytes.await?;
        let log = self.file.as_ref().map(|file| {
            let mut path = file.path.clone().into_os_string();
            path.push("-wal");
            std::fs::metadata(path).map_or(0, |found| found.len())
        });
        Ok(Stats { database_bytes, log_bytes: log.unwrap_or(0) })
    }

    pub(crate) fn writer(&self) -> &Writer {
        self.writer.as_ref().expect("only a drop takes the writer away")
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Runs a read. What a row holds is decoded inside, off the caller's thread.
    pub(crate) async fn read<T, R>(&self, action: &'static str, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let read = move |connection: &Connection| {
            read(connection).map_err(|error| store_error(action, error))
        };
        match &self.readers {
            Some(readers) => readers.run(read).await,
            None => self.writer().run(move |connection| read(connection)).await,
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // Readers go first, so that the last connection to close is the writer's, which leaves no
        // write-ahead log behind.
        self.readers = None;
        let stopped = self.writer.take().is_none_or(Writer::stop);
        if let Some(file) = self.file.take().filter(|_| stopped) {
            file.lock.release();
        }
    }
}

fn start(
    connection: Connection,
    checkpoints: Option<Checkpoints>,
    path: PathBuf,
) -> Result<Writer, OpenError> {
    let started = Writer::start(connection, checkpoints);
    started.map_err(|source| OpenError::Io { action: "start a thread for", path, source })
}

#[cfg(test)]
mod tests;
