//! Checks and measures an open database.

use noetl_store::{StoreError, TableSize};
use rusqlite::{Connection, ErrorCode, Row};

use crate::SqliteStore;
use crate::column::count;

/// Returns the findings of an integrity check, at most 100. If the file is too damaged for the
/// check to complete, that error is a finding.
fn findings(
    connection: &Connection,
    check: &str,
    line: impl FnMut(&Row<'_>) -> rusqlite::Result<String>,
) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let read = || -> rusqlite::Result<()> {
        let mut check = connection.prepare(check)?;
        for line in check.query_map([], line)?.take(100) {
            found.push(line?);
        }
        Ok(())
    };
    match read() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            found.push(error.to_string());
        }
        other => other?,
    }
    Ok(found)
}

impl SqliteStore {
    /// Returns the problems found by SQLite's integrity and foreign key checks, at most 100 each.
    /// Reads the whole database.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read("check the database", |connection| {
            let whole = |row: &Row<'_>| row.get(0);
            let mut found = findings(connection, "pragma integrity_check(100)", whole)?;
            found.retain(|line| line != "ok");
            found.extend(findings(connection, "pragma foreign_key_check", |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                Ok(format!("a row of {table} refers to one of {parent} that is not there"))
            })?);
            Ok(found)
        })
        .await
    }

    /// Returns the rows and bytes of every table, including indexes, sorted by name. Counts every
    /// row, so the call takes time on large tables.
    pub async fn tables(&self) -> Result<Vec<TableSize>, StoreError> {
        self.read("measure tables", |connection| {
            let sql = include_str!("../queries/table_sizes.sql");
            let mut sizes = connection.prepare(sql)?;
            let size = |row: &Row<'_>| Ok((row.get(0)?, count(row, 1)?));
            let sizes: Vec<(String, u64)> =
                sizes.query_map([], size)?.collect::<rusqlite::Result<_>>()?;
            let measure = |(name, bytes): (String, u64)| {
                let sql = format!("select count(*) from \"{name}\"");
                let rows = connection.query_row(&sql, [], |row| count(row, 0))?;
                Ok(TableSize { name, rows, bytes })
            };
            sizes.into_iter().map(measure).collect()
        })
        .await
    }
}
