//! Opens a file: locks it, checks it, and migrates its schema.

use std::path::Path;

use rusqlite::Connection;

use crate::lock::{LockFile, PreviousExit};
use crate::{OpenError, Synchronous, connection, migrate, private};

/// Maximum size in bytes of a file that is checked after an unclean close. The write-ahead log
/// already protects against crashes. The check is for defective disks and manual changes, and must
/// not delay the start.
const CHECKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A locked file of this program with an up-to-date schema.
pub(crate) struct OpenedFile {
    pub(crate) connection: Connection,
    pub(crate) lock: LockFile,
}

pub(crate) fn open_file(path: &Path, synchronous: Synchronous) -> Result<OpenedFile, OpenError> {
    make_directory(path)?;
    let length = length(path)?;
    let (lock, left) = LockFile::take(path)?;
    match open_locked(path, synchronous, length, left) {
        Ok(connection) => Ok(OpenedFile { connection, lock }),
        Err(error) => {
            // Only a file that was closed cleanly is marked as closed, so that the next start
            // checks it again.
            if left == PreviousExit::Clean {
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
    left: PreviousExit,
) -> Result<Connection, OpenError> {
    let failed = |error| OpenError::from_driver(path, error);
    private::make_file(path).map_err(|source| OpenError::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })?;
    let mut connection = connection::open(Some(path)).map_err(failed)?;
    let had = migrate::version(&connection, path)?;
    if had > 0 && left == PreviousExit::Open && length < CHECKED_BYTES_MAX {
        check(&connection, path)?;
    }
    connection::set_up_writer(&connection, synchronous).map_err(failed)?;
    migrate::migrate(&mut connection, had).map_err(failed)?;
    // This process is the only owner of the file, so the holders of all leases have ended.
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

/// Returns the size of the file in bytes; 0 if it does not exist.
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
