//! The store itself: one writer, a few readers, one lock.

use std::path::PathBuf;
use std::sync::Arc;

use noetl_model::Timestamp;
use noetl_store::{OutboxOptions, StoreClock, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::checkpoint::{Checkpoints, PAGES_MAX};
use crate::error::{commit_error, store_error};
use crate::inspect;
use crate::lock::LockFile;
use crate::open::{self, Opened};
use crate::readers::Readers;
use crate::writer::Writer;
use crate::{Location, OpenError, Options};

/// A store in a SQLite file, or in memory.
///
/// Dropping it finishes what is queued, copies the write-ahead log into the file and gives the file
/// back, which blocks for as long as that takes; [`SqliteStore::close`] does not block its thread.
#[derive(Debug)]
pub struct SqliteStore {
    /// Present until the store is closed.
    writer: Option<Writer>,
    /// None in memory: there the writer reads, because no other connection can.
    readers: Option<Arc<Readers>>,
    file: Option<OpenFile>,
    clock: StoreClock,
    outbox: OutboxOptions,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    /// None when the file is only looked at.
    lock: Option<LockFile>,
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
        let (clock, outbox) = (options.clock, options.outbox);
        let of_writer = (clock.clone(), outbox.is_on);
        let Location::File(path) = options.location else {
            let connection = open::open_memory()?;
            let writer = start(connection, None, PathBuf::from(":memory:"), of_writer)?;
            return Ok(Self { writer: Some(writer), readers: None, file: None, clock, outbox });
        };
        let Opened { mut connection, lock } = open::open_file(&path, options.synchronous)?;
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

    /// Opens a file to look at, whoever owns it: it is not changed, brought up to date or locked,
    /// and every call that would write is an error.
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

    /// The store's clock, for what runs on another thread.
    pub(crate) fn clock(&self) -> StoreClock {
        self.clock.clone()
    }

    /// How the outbox is kept.
    pub(crate) fn outbox(&self) -> OutboxOptions {
        self.outbox
    }

    /// Runs a change in a transaction of its own, with the time at which it runs. When this
    /// returns `Ok`, it is as durable as an append; on an error nothing of it stays.
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
) -> Result<Writer, OpenError> {
    let started = Writer::start(connection, checkpoints, clock, has_outbox);
    started.map_err(|source| OpenError::Io { action: "start a thread for", path, source })
}

#[cfg(test)]
mod tests;
