//! Opens connections and sets page size, caches, and time limits.

use std::path::Path;
use std::time::Duration;

use noetl_store::path_contains;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags};

use crate::Synchronous;

/// Time limit for a lock: long enough for a checkpoint that locks the file, short enough to be
/// noticed.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes per page. A single step touches ten pages, each of which is written completely: with 8 KiB
/// it wrote 75 KB and took a seventh longer. With many steps per commit there is no difference.
const PAGE_SIZE: u32 = 4096;

/// Page cache of the writer, in KiB. Contains the pages of running executions, so that a commit
/// never waits for a read.
pub(crate) const WRITER_CACHE_KIB: i64 = 64 * 1024;

/// Page cache of a reader, in KiB. The operating system caches the rest.
pub(crate) const READER_CACHE_KIB: i64 = 8 * 1024;

/// Number of statements the writer caches: all of them, so that none is prepared twice.
const WRITER_STATEMENTS: usize = 256;

/// Opens a database file, or a database in memory. Writes nothing yet.
pub(crate) fn open(path: Option<&Path>) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match path {
        Some(path) => Connection::open_with_flags(path, flags)?,
        None => Connection::open_in_memory_with_flags(flags)?,
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Configures a connection that writes.
pub(crate) fn set_up_writer(
    connection: &Connection,
    synchronous: Synchronous,
) -> rusqlite::Result<()> {
    // Takes effect only if the file is still empty.
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    // The query returns the effective mode, which is different in memory.
    connection.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", synchronous.as_str())?;
    // The `checkpoint` module runs checkpoints in a separate thread.
    connection.query_row("pragma wal_autocheckpoint = 0", [], |_| Ok(()))?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
    add_functions(connection)
}

pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    add_functions(&connection)?;
    Ok(connection)
}

fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("path_contains", 2, flags, |context| {
        let path = context.get_raw(0).as_str()?;
        let text = context.get_raw(1).as_str()?;
        Ok(path_contains(path, text))
    })
}
