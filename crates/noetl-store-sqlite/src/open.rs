//! Opening a file: whose it is, whether it is whole, and bringing it up to date.

use std::path::Path;

use rusqlite::Connection;

use crate::lock::{LeftBehind, LockFile};
use crate::{OpenError, Synchronous, connection, migrate, private};

/// Bytes up to which a file that was left open is read through before it is used. The write-ahead
/// log makes a crash harmless; this is for disks and people, and must not delay a start.
const CHECKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file that is ours, locked and up to date.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) lock: LockFile,
}

pub(crate) fn open_file(path: &Path, synchronous: Synchronous) -> Result<Opened, OpenError> {
    make_directory(path)?;
    let length = length(path)?;
    let (lock, left) = LockFile::take(path)?;
    match open_locked(path, synchronous, length, left) {
        Ok(connection) => Ok(Opened { connection, lock }),
        Err(error) => {
            // What was found stays to be found: only a file left in order counts as closed.
            if left == LeftBehind::Clean {
                lock.release();
            }
            Err(error)
        }
    }
}

fn open_locked(
    path: &Path,
    synchronous: Synchronous,
    length: u64,
    left: LeftBehind,
) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::from_driver(path, error);
    private::make_file(path).map_err(|source| OpenError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    let mut connection = connection::open(Some(path)).map_err(failed)?;
    let had = migrate::version(&connection, path)?;
    if had > 0 && left == LeftBehind::Open && length < CHECKED_BYTES_MAX {
        check(&connection, path)?;
    }
    connection::set_up_writer(&connection, synchronous).map_err(failed)?;
    migrate::migrate(&mut connection, had).map_err(failed)?;
    // The file has one owner, and that is us: whoever held a lease on anything is gone.
    connection.execute("update leader set until = 0 where until > 0", []).map_err(failed)?;
    Ok(connection)
}

pub(crate) fn open_memory() -> Result<Connection, OpenError> {
    let open = || {
        let mut connection = connection::open(None)?;
        connection::set_up_writer(&connection, Synchronous::Normal)?;
        migrate::migrate(&mut connection, 0)?;
        Ok(connection)
    };
    open().map_err(|error| OpenError::from_driver(":memory:", error))
}

fn make_directory(path: &Path) -> Result<(), OpenError> {
    let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    private::make_directory(directory).map_err(|source| OpenError::Io {
        action: "make the directory",
        path: directory.to_owned(),
        source,
    })
}

/// The length of the file, 0 when there is none.
fn length(path: &Path) -> Result<u64, OpenError> {
    let failed = |source| OpenError::Io { action: "open", path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(failed(std::io::ErrorKind::IsADirectory.into())),
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed(error)),
    }
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = connection.query_row("pragma quick_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| OpenError::from_driver(path, error))?.as_str() {
        "ok" => Ok(()),
        detail => Err(OpenError::Corrupt { path: path.to_owned(), detail: detail.to_owned() }),
    }
}
