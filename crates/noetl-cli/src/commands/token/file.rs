//! Creates the file for a new token before the token itself, so that no token is lost because its
//! file can't be written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::{CliError, ErrorKind};

/// A file that this process created. Dropping it before the token is written removes the file.
pub(super) struct NewFile {
    path: PathBuf,
    file: File,
    is_written: bool,
}

impl NewFile {
    /// Creates a file that only its owner can read. Returns `None` if the file exists.
    pub(super) fn create(path: &Path) -> Result<Option<Self>, CliError> {
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match created {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), file, is_written: false })),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed(path, &error)),
        }
    }

    /// Writes the token and syncs the file.
    pub(super) fn write(mut self, token: &str) -> Result<(), CliError> {
        let written = writeln!(self.file, "{token}").and_then(|()| self.file.sync_all());
        written.map_err(|error| failed(&self.path, &error))?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
        .about(&format!("could not write {}", path.display()))
}
