//! Migrates the schema, and identifies files of this program.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// SQLite application ID of files of this program: "NoTL" in ASCII.
const APPLICATION_ID: i64 = 0x4e6f_544c;

/// Migrations in order, from an empty file to the latest schema. The `user_version` of a file is
/// the number of migrations that were applied.
pub(crate) const MIGRATIONS: [&str; 17] = [
    include_str!("../migrations/0001_store.sql"),
    include_str!("../migrations/0002_log.sql"),
    include_str!("../migrations/0003_traffic.sql"),
    include_str!("../migrations/0004_keeping.sql"),
    include_str!("../migrations/0005_retention.sql"),
    include_str!("../migrations/0006_import.sql"),
    include_str!("../migrations/0007_subscriptions.sql"),
    include_str!("../migrations/0008_tokens.sql"),
    include_str!("../migrations/0009_log.sql"),
    include_str!("../migrations/0010_catalog_deleted.sql"),
    include_str!("../migrations/0011_holdings.sql"),
    include_str!("../migrations/0012_audit_chain.sql"),
    include_str!("../migrations/0013_appends.sql"),
    include_str!("../migrations/0014_checks.sql"),
    include_str!("../migrations/0015_sealed_settings.sql"),
    include_str!("../migrations/0016_access.sql"),
    include_str!("../migrations/0017_append_rows.sql"),
];

/// Value of `user_version` after all migrations.
const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Returns the number of migrations that were applied to a file.
///
/// Rejects a file of another program or of a newer version. Writes nothing, so the file of another
/// program stays unchanged.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<usize, OpenError> {
    let number = |sql: &str| -> Result<i64, OpenError> {
        let answer = connection.query_row(sql, [], |row| row.get(0));
        answer.map_err(|error| OpenError::from_driver(path, error))
    };
    let application = number("pragma application_id")?;
    let found = number("pragma user_version")?;
    let is_empty = number("select count(*) from sqlite_schema")? == 0;
    let is_new = application == 0 && is_empty;
    if application != APPLICATION_ID && !is_new {
        return Err(OpenError::NotOurs { path: path.to_owned() });
    }
    if is_new {
        return Ok(0);
    }
    if found > KNOWN {
        return Err(OpenError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    usize::try_from(found).map_err(|_| OpenError::NotOurs { path: path.to_owned() })
}

/// Runs the pending migrations in one transaction.
pub(crate) fn migrate(connection: &mut Connection, had: usize) -> rusqlite::Result<()> {
    if had == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.iter().skip(had) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", KNOWN)?;
    transaction.commit()
}
