//! A copy of one moment, made beside a running process.
//!
//! The copy is of the moment at which it begins, whatever is written meanwhile: the pages are read
//! in one transaction, which holds up no writer. It gets its name when it is whole and on the disk,
//! so that a file of that name is never half a copy.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::{OpenError, connection, migrate, private};

/// Pages copied in one go: a few megabytes, so that progress shows.
const PAGES: i32 = 1000;

/// Copies the database at `from` to the new file `to`, and says how many bytes that are. Tells how
/// many pages of how many are copied as it goes.
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
    // What a copy that was cut short has left.
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
        // Half a copy is of no use to anybody.
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
    // The first read of a transaction decides which moment it sees.
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

/// Makes the copy durable and gives it its name. How many bytes it has.
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
