//! One owning process per file.
//!
//! The lock is the operating system's, so it ends with the process however that ends. The file's
//! text is the owner's process id while it is open and empty after a clean close; text that is
//! found without a lock therefore says that the last owner died.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
}

/// How the last owner of a file left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftBehind {
    /// Closed, or there was none.
    Clean,
    /// Open: its process ended before it could close.
    Open,
}

impl LockFile {
    /// Takes the lock of the database at `database`, or says who has it.
    pub(crate) fn take(database: &Path) -> Result<(Self, LeftBehind), OpenError> {
        let path = path_of(database);
        let failed = |action| {
            let path = path.clone();
            move |source| OpenError::Io { action, path, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed("open the lock file"))?;
        let text = match file.try_lock() {
            Ok(()) => text(&mut file).map_err(failed("read the lock file"))?,
            Err(TryLockError::WouldBlock) => {
                let pid = text(&mut file).ok().and_then(|text| text.trim().parse().ok());
                return Err(OpenError::InUse { path: database.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
        };
        let left = if text.is_empty() { LeftBehind::Clean } else { LeftBehind::Open };
        let mut lock = Self { file };
        let owner = format!("{}\n", std::process::id());
        lock.write(&owner).map_err(failed("write the lock file"))?;
        Ok((lock, left))
    }

    /// Gives the lock back after the database was closed.
    pub(crate) fn release(mut self) {
        if let Err(error) = self.write("") {
            // The next owner checks the file once more than it had to; nothing is lost.
            tracing::warn!(%error, "could not empty the lock file");
        }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }
}

fn text(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(".lock");
    path.into()
}
