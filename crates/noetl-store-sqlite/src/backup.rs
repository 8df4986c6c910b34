//! Copies a database while another process uses it.
//!
//! The copy is a consistent snapshot from the time at which it starts: one read transaction reads
//! all pages and does not block the writer. The copy gets its final name when it is complete and
//! synced, so that a file of that name is never partial.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::{OpenError, connection, migrate, private};

/// Number of pages per step: a few megabytes, so that progress is visible.
const PAGES: i32 = 1000;

/// Copies the database at `from` to the new file `to`, and returns the size in bytes.
///
/// Calls `progress` with the number of copied pages and the total. Fails if `to` exists.
pub fn backup(
    from: &Path,
    to: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<u64, OpenError> {
    let failed = |error| OpenError::from_driver(from, error);
    let unwritable = |path: &Path, source| OpenError::Io {
        action: "write the copy",
        path: path.to_owned(),
        source,
    };
    if let Err(source) = std::fs::metadata(from) {
        return Err(OpenError::Io { action: "open", path: from.to_owned(), source });
    }
    let source = connection::open_reader(from).map_err(failed)?;
    migrate::version(&source, from)?;
    if to.symlink_metadata().is_ok() {
        return Err(unwritable(to, std::io::ErrorKind::AlreadyExists.into()));
    }
    let partial = partial(to);
    // Remove the leftover of an interrupted copy.
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(unwritable(&partial, error));
        }
        Ok(()) | Err(_) => {}
    }
    private::make_file(&partial).map_err(|error| unwritable(&partial, error))?;
    let copied = copy(&source, &partial, &mut progress).map_err(|error| match error {
        CopyError::Driver(error) => OpenError::from_driver(&partial, error),
        CopyError::Damaged(detail) => OpenError::Corrupt { path: from.to_owned(), detail },
    });
    let kept = copied.and_then(|()| keep(&partial, to).map_err(|error| unwritable(to, error)));
    if kept.is_err() {
        // A partial copy is useless.
        let _ = std::fs::remove_file(&partial);
    }
    kept
}

enum CopyError {
    Driver(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }
}

fn copy(
    source: &Connection,
    to: &Path,
    progress: &mut impl FnMut(u64, u64),
) -> Result<(), CopyError> {
    // The first read of a transaction determines its snapshot.
    source.execute_batch("begin")?;
    source.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
    let mut copy = Connection::open(to)?;
    {
        let backup = Backup::new(source, &mut copy)?;
        loop {
            let step = backup.step(PAGES)?;
            let pages = backup.progress();
            let number = |pages: i32| u64::try_from(pages).unwrap_or(0);
            progress(number(pages.pagecount - pages.remaining), number(pages.pagecount));
            if step == StepResult::Done {
                break;
            }
        }
    }
    source.execute_batch("commit")?;
    let found: String = copy.query_row("pragma quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(CopyError::Damaged(found));
    }
    copy.close().map_err(|(_, error)| error.into())
}

/// Syncs the copy, renames it to its final name, and returns its size in bytes.
fn keep(partial: &Path, to: &Path) -> std::io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    std::fs::rename(partial, to)?;
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(bytes)
}

fn partial(to: &Path) -> PathBuf {
    let mut path = OsString::from(to);
    path.push(".partial");
    path.into()
}
