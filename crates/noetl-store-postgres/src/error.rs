//! Errors of opening a store, and the classification of driver errors.

use noetl_store::{BackendError, StoreError};
use sqlx::Error;

/// Error of opening a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL is not of the form postgres://user:password@host:port/database")]
    Url(#[source] BackendError),
    /// The server is unavailable or rejected the connection.
    #[error("could not connect to Postgres at {location}")]
    Connect {
        location: String,
        #[source]
        source: BackendError,
    },
    /// The server is older than Postgres 15.
    #[error("Postgres at {location} is version {found}; 15 or newer is needed")]
    Version { location: String, found: String },
    /// The encoding of the database can't represent all texts.
    #[error("the database at {location} has encoding {found}; make one with encoding UTF8")]
    Encoding { location: String, found: String },
    /// A newer version of this program changed the schema.
    #[error(
        "the schema at {location} has version {found}, and this program knows {known}: a newer version changed the schema"
    )]
    Newer {
        location: String,
        found: i32,
        /// Latest version that this program knows.
        known: i32,
    },
    /// The schema is out of date, and migration was not allowed.
    #[error(
        "the schema at {location} has version {found} and {known} is needed: run `noetl db migrate`"
    )]
    Older {
        location: String,
        /// Schema version of the database; 0 if there is no schema.
        found: i32,
        /// Schema version that this program needs.
        known: i32,
    },
    /// A migration failed and was rolled back.
    #[error("migration {name} failed at {location} and was undone")]
    Migration {
        location: String,
        name: String,
        #[source]
        source: BackendError,
    },
    /// Any other error of the database.
    #[error("could not open the database at {location}")]
    Database {
        location: String,
        #[source]
        source: BackendError,
    },
}

/// Outcome of a statement that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementOutcome {
    /// The server rolled it back because of a conflict. Retrying it unchanged can succeed.
    Retry,
    /// Disk or memory of the server is exhausted.
    Full,
    /// The server rejected it, or it was never sent.
    Refused,
    /// The server rejected the data. Retrying can't succeed.
    Data,
    /// The connection was lost, so the outcome is unknown.
    Unknown,
    /// This version can't decode a row.
    Row,
}

pub(crate) fn fate(error: &Error) -> StatementOutcome {
    match error {
        Error::Database(error) => match error.code().as_deref() {
            // Serialization failure, deadlock, lock not available.
            Some("40001" | "40P01" | "55P03") => StatementOutcome::Retry,
            // Disk full, out of memory, and related codes. A full disk can also appear as an I/O
            // error while a file is extended, which has its own code.
            Some("53100" | "53200" | "53000") => StatementOutcome::Full,
            // The server shut down or the connection failed during the statement.
            Some("57P01" | "57P02" | "57P04" | "08006" | "08003" | "08000") => {
                StatementOutcome::Unknown
            }
            // The data has an invalid form or size, or violates a constraint.
            Some(code) if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => {
                StatementOutcome::Data
            }
            _ => StatementOutcome::Refused,
        },
        // The statement was not sent.
        Error::PoolTimedOut
        | Error::PoolClosed
        | Error::Configuration(_)
        | Error::Encode(_)
        | Error::InvalidArgument(_) => StatementOutcome::Refused,
        Error::ColumnDecode { .. } | Error::Decode(_) => StatementOutcome::Row,
        _ => StatementOutcome::Unknown,
    }
}

/// Returns `true` if the event log already contains an event with this ID.
fn is_taken_event(error: &Error) -> bool {
    let Error::Database(error) = error else { return false };
    error.is_unique_violation() && error.table() == Some("event_lookup")
}

/// Converts the error of a read, or of a write that is known not to be committed.
pub(crate) fn store_error(action: &'static str, error: Error) -> StoreError {
    if is_taken_event(&error) {
        return StoreError::EventTaken(error.into());
    }
    match fate(&error) {
        StatementOutcome::Full => StoreError::Full(error.into()),
        StatementOutcome::Row => match error {
            Error::ColumnDecode { source, .. } | Error::Decode(source) => StoreError::Row(source),
            other => StoreError::Row(other.into()),
        },
        StatementOutcome::Retry
        | StatementOutcome::Refused
        | StatementOutcome::Data
        | StatementOutcome::Unknown => StoreError::backend(action, error),
    }
}

/// Converts the error of a write that was sent. A lost connection leaves the outcome of the write
/// unknown.
pub(crate) fn write_error(action: &'static str, error: Error) -> StoreError {
    match fate(&error) {
        StatementOutcome::Unknown => StoreError::Unknown(error.into()),
        _ => store_error(action, error),
    }
}

/// Returns the error for a statement that must return a row and returned none, because another row
/// uses the ID.
pub(crate) fn no_row(action: &'static str) -> StoreError {
    StoreError::backend(action, "the id is taken by another")
}
