//! Inspects a database: schema version, integrity, and table sizes.

use noetl_store::{StoreError, TableSize};
use sqlx::{ConnectOptions, Connection, Row};

use crate::column::number;
use crate::{OpenError, Options, PostgresStore, migrate};

/// Schema version of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Number of migrations that were applied; 0 if there is no schema.
    pub found: i32,
    /// Number of migrations that this program knows.
    pub known: i32,
}

/// Returns the schema version of a database. Read-only.
pub async fn schema(options: &Options) -> Result<Schema, OpenError> {
    let location = options.location();
    let connected = options.connect.connect().await;
    let mut connection = connected
        .map_err(|error| OpenError::Connect { location: location.clone(), source: error.into() })?;
    let found = migrate::version(&mut connection).await;
    let found = found.map_err(|error| OpenError::Database { location, source: error.into() })?;
    // The result is known, so a failure to close doesn't matter.
    let _ = connection.close().await;
    Ok(Schema { found, known: migrate::known() })
}

impl PostgresStore {
    /// Returns the problems of the schema: invalid indexes, and rows outside every partition.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let sql = include_str!("../queries/schema_check.sql");
        self.list("check the database", || sqlx::query(sql), |row| row.try_get(0)).await
    }

    /// Returns the rows and bytes of every table, including indexes and partitions, sorted by name.
    /// Counts every row, so the call takes time on large tables.
    pub async fn tables(&self) -> Result<Vec<TableSize>, StoreError> {
        let sql = include_str!("../queries/table_sizes.sql");
        let size = |row: &_| {
            let name = Row::try_get::<String, _>(row, 0)?;
            Ok(TableSize { name, rows: number(row, 1)?, bytes: number(row, 2)? })
        };
        self.list("measure tables", || sqlx::query(sql), size).await
    }
}
