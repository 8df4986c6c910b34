//! Copies the write-ahead log (WAL) to the database file without blocking the writer.
//!
//! A checkpoint on the writer's connection would block every commit while it copies the WAL. A
//! separate thread therefore copies most of it while commits continue, and the writer copies only
//! the pages added in the meantime. The WAL then restarts at its beginning, and its file does not
//! grow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::wal_prealloc::WalPreallocator;
use crate::{Synchronous, connection};

/// Number of WAL pages that trigger a checkpoint. A page that is written repeatedly is copied only
/// once per checkpoint, so rare checkpoints cost less. A start after a crash has to read the whole
/// WAL, about 128 MB.
pub(crate) const PAGES_MAX: u32 = 32_000;

pub(crate) struct Checkpoints {
    /// Number of WAL pages after the last commit.
    pages: Arc<AtomicU32>,
    /// Number of WAL pages that triggers a checkpoint after the WAL restarted.
    pages_max: u32,
    /// Number of WAL pages that triggers the next checkpoint.
    due_at: u32,
    seen: u32,
    /// Preallocates the WAL. `None` if commits don't wait for the disk.
    room: Option<WalPreallocator>,
    /// Whether the thread has copied its part, and the writer must copy the rest.
    rest_due: Arc<AtomicBool>,
    begin: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Checkpoints {
    pub(crate) fn start(
        writer: &mut Connection,
        path: &Path,
        synchronous: Synchronous,
        pages_max: u32,
    ) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let counter = pages.clone();
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
            counter.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let copier = copier(path, synchronous)?;
        let page_size = writer.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let room =
            (synchronous == Synchronous::Full).then(|| WalPreallocator::new(path, page_size));
        let rest_due = Arc::new(AtomicBool::new(false));
        let done = rest_due.clone();
        let (begin, begun) = sync_channel(1);
        let builder = std::thread::Builder::new().name("noetl-sqlite-checkpoint".into());
        let thread = builder
            .spawn(move || copy_bulk(&copier, &begun, &done))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(Self { pages, pages_max, due_at: pages_max, seen: 0, room, rest_due, begin, thread })
    }

    /// Starts or finishes a checkpoint if one is due, and preallocates space for the next commit.
    /// Called after each commit.
    pub(crate) fn look(&mut self, writer: &Connection) {
        if self.rest_due.swap(false, Ordering::Acquire) {
            checkpoint(writer, "passive");
        }
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.due_at = self.pages_max;
        }
        let added = pages.saturating_sub(self.seen);
        self.seen = pages;
        if let Some(room) = &mut self.room {
            room.make(pages, added);
        }
        if pages >= self.due_at && self.begin.try_send(()).is_ok() {
            // A reader that still uses the WAL prevents its restart. Wait for as many pages again
            // before the next attempt.
            self.due_at = pages.saturating_add(self.pages_max);
        }
    }

    /// Stops the thread and copies the whole WAL.
    pub(crate) fn stop(self, writer: &Connection) {
        drop(self.begin);
        if self.thread.join().is_err() {
            tracing::warn!("checkpoint thread panicked");
        }
        checkpoint(writer, "truncate");
    }
}

/// Opens the connection of the checkpoint thread.
fn copier(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let connection = connection::open(Some(path))?;
    connection::set_up_writer(&connection, synchronous)?;
    Ok(connection)
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
        // The WAL retains the pages that were not copied, and the next checkpoint retries.
        tracing::warn!(%error, "WAL checkpoint failed");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::Checkpoints;
    use crate::{Synchronous, connection};

    fn opened(
        directory: &TempDir,
        synchronous: Synchronous,
        pages_max: u32,
    ) -> (Connection, Checkpoints) {
        let path = directory.path().join("noetl.db");
        let mut writer = connection::open(Some(&path)).expect("a database");
        connection::set_up_writer(&writer, synchronous).expect("its settings");
        writer.execute_batch("create table t (text text)").expect("a table");
        let checkpoints = Checkpoints::start(&mut writer, &path, synchronous, pages_max);
        let checkpoints = checkpoints.expect("checkpoints");
        (writer, checkpoints)
    }

    fn write(writer: &Connection, checkpoints: &mut Checkpoints) -> u32 {
        writer.execute("insert into t values (zeroblob(9000) || 'x')", []).expect("a row");
        checkpoints.look(writer);
        checkpoints.seen
    }

    #[test]
    fn the_copying_connection_syncs_as_the_writer_does() {
        let directory = TempDir::new().expect("a temporary directory");
        for (synchronous, level) in [(Synchronous::Full, 2), (Synchronous::Normal, 1)] {
            let path = directory.path().join(format!("{level}.db"));
            let copier = super::copier(&path, synchronous).expect("a connection");
            let found = copier.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
            assert_eq!(found, Ok(level));
        }
    }

    #[test]
    fn the_log_starts_over_while_commits_go_on() {
        let directory = TempDir::new().expect("a temporary directory");
        let (writer, mut checkpoints) = opened(&directory, Synchronous::Normal, 50);
        let mut before = 0;
        // The copying thread takes its time; a log that never started over would go on growing.
        let starts = (0..100_000).filter(|_| {
            let pages = write(&writer, &mut checkpoints);
            let is_start = pages < before;
            before = pages;
            is_start
        });
        assert_eq!(starts.take(3).count(), 3);
        checkpoints.stop(&writer);
    }

    #[test]
    fn a_crash_leaves_preallocated_space_and_committed_data() {
        let directory = TempDir::new().expect("a temporary directory");
        let (writer, mut checkpoints) = opened(&directory, Synchronous::Full, 10_000);
        let log = || std::fs::metadata(directory.path().join("noetl.db-wal")).expect("a log").len();
        let copy = TempDir::new().expect("a temporary directory");
        let mut lengths = BTreeSet::new();
        for rows in 1..=200 {
            let pages = write(&writer, &mut checkpoints);
            let used = 32 + u64::from(pages) * (4096 + 24);
            assert!(used + 64 * 1024 <= log(), "the next small commit finds room");
            lengths.insert(log());
            // What another process would find.
            for file in ["noetl.db", "noetl.db-wal"] {
                std::fs::copy(directory.path().join(file), copy.path().join(file)).expect("a copy");
            }
            let found = connection::open(Some(&copy.path().join("noetl.db"))).expect("a copy");
            let count = found.query_row("select count(*) from t", [], |row| row.get(0));
            assert_eq!(count, Ok(rows));
        }
        assert!(lengths.len() > 1, "it was made more than once");
        assert!(lengths.len() < 30, "and not for every commit");
        checkpoints.stop(&writer);
    }

    #[test]
    fn a_reader_in_the_log_delays_it_and_loses_nothing() {
        let directory = TempDir::new().expect("a temporary directory");
        let (writer, mut checkpoints) = opened(&directory, Synchronous::Normal, 50);
        write(&writer, &mut checkpoints);
        let path = directory.path().join("noetl.db");
        let reader = connection::open_reader(&path).expect("a reader");
        let count = || reader.query_row("select count(*) from t", [], |row| row.get::<_, i64>(0));
        reader.execute_batch("begin").expect("a read transaction");
        assert_eq!(count(), Ok(1));
        for _ in 0..400 {
            write(&writer, &mut checkpoints);
        }
        assert_eq!(count(), Ok(1), "a read sees one moment");
        assert!(checkpoints.due_at <= checkpoints.seen + 50, "the next try is due");
        reader.execute_batch("commit").expect("the end of it");
        assert_eq!(count(), Ok(401));
        drop(reader);
        checkpoints.stop(&writer);
    }
}
