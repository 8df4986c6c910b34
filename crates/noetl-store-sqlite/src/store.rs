//! The store: a writer, a few readers, and a lock file.

use std::path::PathBuf;
use std::sync::Arc;

use noetl_model::Timestamp;
use noetl_store::{OutboxOptions, StoreClock, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::checkpoint::{Checkpoints, PAGES_MAX};
use crate::error::{commit_error, store_error};
use crate::inspect;
use crate::lock::LockFile;
use crate::open::{self, OpenedFile};
use crate::readers::Readers;
use crate::writer::WriterThread;
use crate::{DatabaseLocation, OpenError, Options};

/// A store in an SQLite file, or in memory.
///
/// Dropping it finishes the queued requests, copies the write-ahead log to the file, and releases
/// the file, which blocks the thread. [`SqliteStore::close`] does not block its thread.
#[derive(Debug)]
pub struct SqliteStore {
    /// `Some` until the store is closed.
    writer: Option<WriterThread>,
    /// `None` in memory: the writer reads there, because another connection can't.
    readers: Option<Arc<Readers>>,
    file: Option<OpenFile>,
    clock: StoreClock,
    outbox: OutboxOptions,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    /// `None` if the file was opened only for inspection.
    lock: Option<LockFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStats {
    /// Size of the database in bytes, including free pages.
    pub database_bytes: u64,
    /// Size of the write-ahead log file in bytes, including pages already copied.
    pub log_bytes: u64,
}

impl SqliteStore {
    /// Opens a store, and creates it if it doesn't exist. Blocks the thread.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let (clock, outbox) = (options.clock, options.outbox);
        let of_writer = (clock.clone(), outbox.is_on);
        let DatabaseLocation::File(path) = options.location else {
            let connection = open::open_memory()?;
            let writer = start(connection, None, PathBuf::from(":memory:"), of_writer)?;
            return Ok(Self { writer: Some(writer), readers: None, file: None, clock, outbox });
        };
        let OpenedFile { mut connection, lock } = open::open_file(&path, options.synchronous)?;
        let failed = |error| OpenError::from_driver(&path, error);
        let readers = Readers::open(&path, options.readers).map_err(failed)?;
        let checkpoints =
            Checkpoints::start(&mut connection, &path, options.synchronous, PAGES_MAX);
        let checkpoints = checkpoints.map_err(failed)?;
        let writer = start(connection, Some(checkpoints), path.clone(), of_writer)?;
        Ok(Self {
            writer: Some(writer),
            readers: Some(Arc::new(readers)),
            file: Some(OpenFile { path, lock: Some(lock) }),
            clock,
            outbox,
        })
    }

    /// Opens a file for inspection, regardless of its owner. Does not change, migrate, or lock the
    /// file; every call that would write returns an error.
    pub fn look_at(path: PathBuf) -> Result<Self, OpenError> {
        let connection = inspect::open_current(&path)?;
        let failed = |error| OpenError::from_driver(&path, error);
        let readers = Readers::open(&path, 1).map_err(failed)?;
        let writer = start(connection, None, path.clone(), (StoreClock::default(), false))?;
        Ok(Self {
            writer: Some(writer),
            readers: Some(Arc::new(readers)),
            file: Some(OpenFile { path, lock: None }),
            clock: StoreClock::default(),
            outbox: OutboxOptions::default(),
        })
    }

    /// Closes the store, and returns when another owner may open the file.
    pub async fn close(self) {
        // Dropping the store blocks. A runtime that is shutting down drops it nevertheless.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Returns the size of the store.
    pub async fn stats(&self) -> Result<FileStats, StoreError> {
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
        Ok(FileStats { database_bytes, log_bytes: log.unwrap_or(0) })
    }

    pub(crate) fn writer(&self) -> &WriterThread {
        self.writer.as_ref().expect("only a drop takes the writer away")
    }

    /// Returns the clock of the store, for use on another thread.
    pub(crate) fn clock(&self) -> StoreClock {
        self.clock.clone()
    }

    /// Returns the outbox options of the store.
    pub(crate) fn outbox(&self) -> OutboxOptions {
        self.outbox
    }

    /// Runs a change in its own transaction, and passes it the current time.
    ///
    /// After `Ok`, the change is as durable as an append. After an error other than
    /// [`Unknown`](StoreError::Unknown), nothing of it is committed.
    pub(crate) async fn write<T, W>(&self, action: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    {
        let clock = self.clock();
        let written = self.writer().run(move |connection| {
            let failed = |error| store_error(action, error);
            let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let transaction = begun.map_err(failed)?;
            let answer = work(&transaction, clock.now()).map_err(failed)?;
            transaction.commit().map_err(|error| commit_error(action, error))?;
            Ok(answer)
        });
        written.await
    }

    /// Runs a read on a free reader. Rows are decoded there, outside the caller's thread.
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
        // Drop the readers first, so that the writer's connection is the last one to close, which
        // removes the write-ahead log.
        self.readers = None;
        let stopped = self.writer.take().is_none_or(WriterThread::stop);
        let lock = self.file.take().and_then(|file| file.lock);
        if let Some(lock) = lock.filter(|_| stopped) {
            lock.release();
        }
    }
}

fn start(
    connection: Connection,
    checkpoints: Option<Checkpoints>,
    path: PathBuf,
    (clock, has_outbox): (StoreClock, bool),
) -> Result<WriterThread, OpenError> {
    let started = WriterThread::start(connection, checkpoints, clock, has_outbox);
    started.map_err(|source| OpenError::Io { action: "start a thread for", path, source })
}

#[cfg(test)]
mod tests;
