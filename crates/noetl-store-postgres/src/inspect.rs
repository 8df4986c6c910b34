//! Looking at a database: how far its schema is, what is wrong with it, how large it is.

use noetl_store::{StoreError, TableSize};
use sqlx::{ConnectOptions, Connection, Row};

use crate::column::number;
use crate::{OpenError, Options, PostgresStore, migrate};

/// How far a schema is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// How many migrations it has had; 0 when there is none.
    pub found: i32,
    /// How many this program knows.
    pub known: i32,
}

/// How far the schema of this database is. Changes nothing.
pub async fn schema(options: &Options) -> Result<Schema, OpenError> {
    let place = options.place();
    let connected = options.connect.connect().await;
    let mut connection = connected
        .map_err(|error| OpenError::Connect { place: place.clone(), source: error.into() })?;
    let found = migrate::version(&mut connection).await;
    let found = found.map_err(|error| OpenError::Database { place, source: error.into() })?;
    // What it holds is of no use to anybody any more.
    let _ = connection.close().await;
    Ok(Schema { found, known: migrate::known() })
}

impl PostgresStore {
    /// What is wrong with the schema: indexes that were not finished, rows outside every partition.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let sql = include_str!("../queries/schema_check.sql");
        self.list("check the database", || sqlx::query(sql), |row| row.try_get(0)).await
    }

    /// Rows and bytes of every table, its indexes and partitions included, by name. Counts every
    /// row.
    pub async fn tables(&self) -> Result<Vec<TableSize>, StoreError> {
        let sql = include_str!("../queries/table_sizes.sql");
        let size = |row: &_| {
            let name = Row::try_get::<String, _>(row, 0)?;
            Ok(TableSize { name, rows: number(row, 1)?, bytes: number(row, 2)? })
        };
        self.list("measure tables", || sqlx::query(sql), size).await
    }
}
