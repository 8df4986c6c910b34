//! Moves the write-ahead log into the file without holding up the writer.
//!
//! A checkpoint that the writer runs by itself stops every commit for as long as it takes to copy
//! the log. So the bulk is copied by another thread while commits go on, and the writer copies only
//! what was added meanwhile; the log then starts over at its beginning and its file does not grow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::{Synchronous, connection};

/// Pages in the log when a checkpoint is due. A page that is written again and again before it is
/// copied is copied once, so few checkpoints are cheap ones; 128 MB is also what a start after a
/// crash has to read.
const PAGES_MAX: u32 = 16_000;

pub(crate) struct Checkpoints {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// How many there are to be before the next checkpoint.
    due_at: u32,
    seen: u32,
    /// Whether the bulk was copied and the rest is the writer's.
    rest_due: Arc<AtomicBool>,
    begin: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Checkpoints {
    pub(crate) fn start(
        writer: &mut Connection,
        path: &Path,
        synchronous: Synchronous,
    ) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let counter = pages.clone();
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
            counter.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let copier = connection::open(Some(path))?;
        connection::set_up_writer(&copier, synchronous)?;
        let rest_due = Arc::new(AtomicBool::new(false));
        let done = rest_due.clone();
        let (begin, begun) = sync_channel(1);
        let builder = std::thread::Builder::new().name("noetl-sqlite-checkpoint".into());
        let thread = builder
            .spawn(move || copy_bulk(&copier, &begun, &done))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(Self { pages, due_at: PAGES_MAX, seen: 0, rest_due, begin, thread })
    }

    /// Starts or finishes a checkpoint when one is due. Called after each commit.
    pub(crate) fn look(&mut self, writer: &Connection) {
        if self.rest_due.swap(false, Ordering::Acquire) {
            checkpoint(writer, "passive");
        }
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.due_at = PAGES_MAX;
        }
        self.seen = pages;
        if pages >= self.due_at && self.begin.try_send(()).is_ok() {
            // A reader that stays in the log keeps it from starting over; then this makes the next
            // try wait for as many pages again.
            self.due_at = pages.saturating_add(PAGES_MAX);
        }
    }

    /// Copies all there is and ends the thread.
    pub(crate) fn stop(self, writer: &Connection) {
        drop(self.begin);
        if self.thread.join().is_err() {
            tracing::warn!("the checkpoint thread had panicked");
        }
        checkpoint(writer, "truncate");
    }
}

fn copy_bulk(copier: &Connection, begun: &Receiver<()>, done: &AtomicBool) {
    while begun.recv().is_ok() {
        checkpoint(copier, "passive");
        done.store(true, Ordering::Release);
    }
}

fn checkpoint(connection: &Connection, mode: &str) {
    let sql = format!("pragma wal_checkpoint({mode})");
    if let Err(error) = connection.query_row(&sql, [], |_| Ok(())) {
        // The log keeps what was not copied; the next checkpoint tries again.
        tracing::warn!(%error, "could not copy the write-ahead log into the database");
    }
}
