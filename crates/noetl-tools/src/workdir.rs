//! A step's fresh, private working directory, gone when the step is.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use noetl_model::{Failure, FailureKind};

/// A directory only this user can enter; removed on drop with all that is in it.
#[derive(Debug)]
pub(crate) struct WorkDir(PathBuf);

impl WorkDir {
    /// Makes a directory with a name of its own below `base`.
    pub(crate) fn fresh(base: &Path) -> Result<Self, Failure> {
        let made = fs::create_dir_all(base)
            .and_then(|()| tempfile::Builder::new().prefix("noetl-").tempdir_in(base));
        match made {
            Ok(dir) => Ok(Self(dir.keep())),
            Err(error) => Err(refused(base, &error)),
        }
    }

    /// Makes the directory `path`, whose parent exists.
    pub(crate) fn at(path: PathBuf) -> Result<Self, Failure> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(refused(&path, &error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Why it cannot be used.
    pub(crate) fn refused(&self, error: &io::Error) -> Failure {
        refused(&self.0, error)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Most steps leave nothing behind: one system call, no walk.
        if fs::remove_dir(&self.0).is_ok() {
            return;
        }
        let path = std::mem::take(&mut self.0);
        let remove = move || {
            if let Err(error) = fs::remove_dir_all(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "could not remove a work directory");
            }
        };
        // A step may leave a million files; removing them must not hold up other steps.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let mut failure = Failure::new(
        FailureKind::Unknown,
        format!("could not make the work directory {}: {error}", path.display()),
    );
    // A full disk or a removed base is the worker's trouble, not the step's.
    failure.retryable = true;
    failure
}
