//! Database files and directories that only their owner can read.
//!
//! A database holds everything that executions work on. SQLite gives the files beside a database the
//! mode of the database itself, so its mode decides.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of files: the owner reads and writes.
const FILE: u32 = 0o600;
/// Mode of directories that are made: the owner alone.
const DIRECTORY: u32 = 0o700;
/// Permission bits of group and others, which are cleared.
const OTHERS: u32 = 0o077;

/// Makes a directory, and those above it, for its owner alone. One that is there stays as it is.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Makes an empty file for its owner alone, or takes the rights of others away from one that is
/// there and from the files that SQLite keeps beside it.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")]
                .iter()
                .try_for_each(|path| restrict(path))
        }
        Err(error) => Err(error),
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Takes the rights of others away. A file of another user stays as it is: that user decides.
fn restrict(path: &Path) -> io::Result<()> {
    let mode = match fs::metadata(path) {
        Ok(found) => found.permissions().mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let kept = fs::Permissions::from_mode(mode & 0o7777 & !OTHERS);
    match fs::set_permissions(path, kept) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        done => done,
    }
}
