//! Errors of opening a store, and the classification of driver errors.

use std::io;
use std::path::PathBuf;

use noetl_store::{BackendError, StoreError};
use rusqlite::{ErrorCode, ffi};

/// Error of opening a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is not an SQLite database.
    #[error("{} is not a SQLite file", path.display())]
    NotADatabase { path: PathBuf },
    /// The file is an SQLite database of another program.
    #[error("{} is a SQLite file of another program", path.display())]
    NotOurs { path: PathBuf },
    /// A newer version of this program changed the file.
    #[error(
        "{} has schema version {found}, and this program knows {known}: a newer version wrote the file",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        /// Latest schema version that this program knows.
        known: i64,
    },
    /// The schema is out of date, and the file was opened read-only.
    #[error("{} has schema version {found}, and this program needs {known}", path.display())]
    Older {
        path: PathBuf,
        found: usize,
        /// Schema version that this program needs.
        known: usize,
    },
    #[error("{} is damaged: {detail}", path.display())]
    Corrupt {
        path: PathBuf,
        /// First problem that was found.
        detail: String,
    },
    /// Another process, or another store of this process, has the file open.
    #[error("{} is in use by {}", path.display(), owner(*pid))]
    InUse {
        path: PathBuf,
        /// Process ID of the owner, if it is in the lock file.
        pid: Option<u32>,
    },
    /// A file could not be read or created.
    #[error("could not {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Any other error of the database.
    #[error("could not open the database {}", path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: BackendError,
    },
}

fn owner(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

impl OpenError {
    pub(crate) fn from_driver(path: impl Into<PathBuf>, error: rusqlite::Error) -> Self {
        let path = path.into();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail: error.to_string() },
            _ => Self::Database { path, source: error.into() },
        }
    }
}

/// Converts the error of a read, or of a write before its commit.
pub(crate) fn store_error(action: &'static str, error: rusqlite::Error) -> StoreError {
    let code = error.sqlite_error().map(|error| error.extended_code);
    match (error.sqlite_error_code(), code) {
        (Some(ErrorCode::DiskFull), _) => StoreError::Full(error.into()),
        (_, Some(ffi::SQLITE_CONSTRAINT_UNIQUE))
            if error.to_string().contains("event_lookup.id") =>
        {
            StoreError::EventTaken(error.into())
        }
        (
            Some(ErrorCode::SystemIoFailure),
            Some(ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE),
        ) => StoreError::Full(error.into()),
        (Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch), _) => {
            StoreError::Refused(error.into())
        }
        (Some(_), _) => StoreError::backend(action, error),
        (None, _) => match error {
            rusqlite::Error::FromSqlConversionFailure(_, _, source) => StoreError::Row(source),
            rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => StoreError::Row(error.into()),
            other => StoreError::backend(action, other),
        },
    }
}

/// Converts the error of a commit. If the disk did not confirm the sync, the transaction is rolled
/// back here but may reappear after a crash, so its outcome is unknown.
pub(crate) fn commit_error(action: &'static str, error: rusqlite::Error) -> StoreError {
    let code = error.sqlite_error().map(|error| error.extended_code);
    match code {
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => {
            StoreError::Unknown(error.into())
        }
        _ => store_error(action, error),
    }
}
