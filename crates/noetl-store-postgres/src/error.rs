//! How opening fails, and what the driver's errors mean to a caller.

use noetl_store::{BackendError, StoreError};
use sqlx::Error;

/// A store that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not one.
    #[error("the database URL is not of the form postgres://user:password@host:port/database")]
    Url(#[source] BackendError),
    /// Nobody answers there, or not to us.
    #[error("could not connect to Postgres at {place}")]
    Connect {
        /// Host, port and database.
        place: String,
        #[source]
        source: BackendError,
    },
    /// The server is too old.
    #[error("Postgres at {place} is version {found}; 15 or newer is needed")]
    Version {
        /// Host, port and database.
        place: String,
        found: String,
    },
    /// The database cannot hold every text.
    #[error("the database at {place} has encoding {found}; make one with encoding UTF8")]
    Encoding {
        /// Host, port and database.
        place: String,
        found: String,
    },
    /// A newer version has changed the schema.
    #[error(
        "the schema at {place} has version {found}, and this program knows {known}: a newer version changed it"
    )]
    Newer {
        /// Host, port and database.
        place: String,
        found: i32,
        /// The newest this program knows.
        known: i32,
    },
    /// The schema is not up to date and was not to be changed.
    #[error(
        "the schema at {place} has version {found} and {known} is needed: run `noetl db migrate`"
    )]
    Older {
        /// Host, port and database.
        place: String,
        /// Its schema version; 0 when there is none.
        found: i32,
        /// The version this program needs.
        known: i32,
    },
    /// A migration failed and was undone.
    #[error("migration {name} failed at {place} and was undone")]
    Migration {
        /// Host, port and database.
        place: String,
        name: String,
        #[source]
        source: BackendError,
    },
    /// Anything else the database says.
    #[error("could not open the database at {place}")]
    Database {
        /// Host, port and database.
        place: String,
        #[source]
        source: BackendError,
    },
}

/// What became of a statement that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server undid it: it can be tried again as it is, at once.
    Retry,
    /// There is no room.
    Full,
    /// The server did not take it.
    Refused,
    /// The server never takes such data.
    Data,
    /// The connection was lost: nobody knows.
    Unknown,
    /// A row this version cannot read.
    Row,
}

pub(crate) fn fate(error: &Error) -> Fate {
    match error {
        Error::Database(error) => match error.code().as_deref() {
            // Serialization failure, deadlock, lock not available.
            Some("40001" | "40P01" | "55P03") => Fate::Retry,
            // Disk full, out of memory, and its relatives; a full disk also shows as an I/O error
            // while a file is extended, which has its own code.
            Some("53100" | "53200" | "53000") => Fate::Full,
            // The server went down under the statement.
            Some("57P01" | "57P02" | "57P04" | "08006" | "08003" | "08000") => Fate::Unknown,
            // What it was given has a wrong form or size, or breaks a rule.
            Some(code) if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => {
                Fate::Data
            }
            _ => Fate::Refused,
        },
        // Nothing was sent yet.
        Error::PoolTimedOut
        | Error::PoolClosed
        | Error::Configuration(_)
        | Error::Encode(_)
        | Error::InvalidArgument(_) => Fate::Refused,
        Error::ColumnDecode { .. } | Error::Decode(_) => Fate::Row,
        _ => Fate::Unknown,
    }
}

/// Whether the log has an event of this id already: its partitions name their keys after themselves.
fn is_taken_event(error: &Error) -> bool {
    let Error::Database(error) = error else { return false };
    let is_key = error.constraint().is_some_and(|name| name.ends_with("_pkey"));
    is_key
        && error.is_unique_violation()
        && error.table().is_some_and(|name| name.starts_with("event"))
}

/// What a failed read, or a failed write that changed nothing if it failed, means to its caller.
pub(crate) fn store_error(action: &'static str, error: Error) -> StoreError {
    if is_taken_event(&error) {
        return StoreError::EventTaken(error.into());
    }
    match fate(&error) {
        Fate::Full => StoreError::Full(error.into()),
        Fate::Row => match error {
            Error::ColumnDecode { source, .. } | Error::Decode(source) => StoreError::Row(source),
            other => StoreError::Row(other.into()),
        },
        Fate::Retry | Fate::Refused | Fate::Data | Fate::Unknown => {
            StoreError::backend(action, error)
        }
    }
}

/// The same for a write whose statement was sent: a lost connection leaves it open what became of it.
pub(crate) fn write_error(action: &'static str, error: Error) -> StoreError {
    match fate(&error) {
        Fate::Unknown => StoreError::Unknown(error.into()),
        _ => store_error(action, error),
    }
}

/// A statement that returns a row whatever it finds returned none: the id is somebody else's.
pub(crate) fn no_row(action: &'static str) -> StoreError {
    StoreError::backend(action, "the id is taken by another")
}
