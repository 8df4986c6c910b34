//! Creates database files and directories that only their owner can read.
//!
//! A database contains all data of executions. SQLite creates the files next to a database with the
//! mode of the database, so that mode protects all of them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of files: only the owner can read and write.
const FILE: u32 = 0o600;
/// Mode of new directories: only the owner has access.
const DIRECTORY: u32 = 0o700;
/// Permission bits of group and others, which are cleared.
const OTHERS: u32 = 0o077;

/// Creates a directory and its parents with access for the owner only. An existing directory stays
/// unchanged.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Creates an empty file with access for the owner only. For an existing file, revokes the access
/// of others, also to the `-wal` and `-shm` files next to it.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            [path.to_owned(), path_with_suffix(path, "-wal"), path_with_suffix(path, "-shm")]
                .iter()
                .try_for_each(|path| restrict(path))
        }
        Err(error) => Err(error),
    }
}

fn path_with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Revokes the access of group and others. The file of another user stays unchanged.
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
