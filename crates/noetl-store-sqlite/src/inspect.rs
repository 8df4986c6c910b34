//! Inspects a database without owning it, while another process may use it. Read-only.

use std::path::Path;

use rusqlite::Connection;

use crate::{OpenError, connection, migrate};

/// Schema version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Number of migrations that were applied; 0 if the file does not exist.
    pub found: usize,
    /// Number of migrations that this program knows.
    pub known: usize,
}

/// Returns the schema version of a file. Read-only.
pub fn schema(path: &Path) -> Result<Schema, OpenError> {
    let known = migrate::MIGRATIONS.len();
    if !path.exists() {
        return Ok(Schema { found: 0, known });
    }
    let found = migrate::version(&open(path)?, path)?;
    Ok(Schema { found, known })
}

/// Opens a file for reading, regardless of its owner. Fails if its schema is not up to date.
pub(crate) fn open_current(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path)?;
    let (found, known) = (migrate::version(&connection, path)?, migrate::MIGRATIONS.len());
    if found < known {
        return Err(OpenError::Older { path: path.to_owned(), found, known });
    }
    Ok(connection)
}

fn open(path: &Path) -> Result<Connection, OpenError> {
    // The driver's error doesn't tell that the file is missing.
    if let Err(source) = std::fs::metadata(path) {
        return Err(OpenError::Io { action: "open", path: path.to_owned(), source });
    }
    connection::open_reader(path).map_err(|error| OpenError::from_driver(path, error))
}
