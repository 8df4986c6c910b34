//! Private working directory of a step, removed when the step ends.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use noetl_model::{Failure, FailureKind};

/// A directory that only this user can access. Dropping it removes the directory with its contents.
#[derive(Debug)]
pub(crate) struct WorkDir(PathBuf);

impl WorkDir {
    /// Creates a directory with a unique name below `base`.
    pub(crate) fn fresh(base: &Path) -> Result<Self, Failure> {
        let made = fs::create_dir_all(base)
            .and_then(|()| tempfile::Builder::new().prefix("noetl-").tempdir_in(base));
        match made {
            Ok(dir) => Ok(Self(dir.keep())),
            Err(error) => Err(refused(base, &error)),
        }
    }

    /// Creates the directory `path`, whose parent must exist.
    pub(crate) fn create_at(path: PathBuf) -> Result<Self, Failure> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(refused(&path, &error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the failure of an unusable directory.
    pub(crate) fn refused(&self, error: &io::Error) -> Failure {
        refused(&self.0, error)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Fast path: most steps leave nothing behind, and a single system call removes the
        // directory.
        if fs::remove_dir(&self.0).is_ok() {
            return;
        }
        let path = std::mem::take(&mut self.0);
        let remove = move || {
            if let Err(error) = fs::remove_dir_all(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "failed to remove work directory");
            }
        };
        // A step may leave a million files; removing them must not delay other steps.
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
    // A full disk or a missing base directory is an error of the worker, not of the step.
    failure.retryable = true;
    failure
}
