//! Migrates the schema to the latest version with numbered, forward-only files. Each migration runs
//! in its own transaction, under a lock that admits one process at a time. Statements are unnamed,
//! and those outside a transaction are a single message, so that a transaction-pooling proxy may be
//! in between.

use sqlx::{Connection, PgConnection, Row};
use tracing::info;

use crate::OpenError;

/// Migrations in order. The number of a migration is its index in this list, from 1.
const MIGRATIONS: [(&str, &str); 16] = [
    ("0000_adopt", include_str!("../migrations/0000_adopt.sql")),
    ("0001_core", include_str!("../migrations/0001_core.sql")),
    ("0002_traffic", include_str!("../migrations/0002_traffic.sql")),
    ("0003_keeping", include_str!("../migrations/0003_keeping.sql")),
    ("0004_import", include_str!("../migrations/0004_import.sql")),
    ("0005_subscriptions", include_str!("../migrations/0005_subscriptions.sql")),
    ("0006_tail", include_str!("../migrations/0006_tail.sql")),
    ("0007_adopted_cursor", include_str!("../migrations/0007_adopted_cursor.sql")),
    ("0008_tokens", include_str!("../migrations/0008_tokens.sql")),
    ("0009_log", include_str!("../migrations/0009_log.sql")),
    ("0010_catalog_deleted", include_str!("../migrations/0010_catalog_deleted.sql")),
    ("0011_holdings", include_str!("../migrations/0011_holdings.sql")),
    ("0012_audit_chain", include_str!("../migrations/0012_audit_chain.sql")),
    ("0015_sealed_settings", include_str!("../migrations/0015_sealed_settings.sql")),
    ("0016_access", include_str!("../migrations/0016_access.sql")),
    ("0017_appends", include_str!("../migrations/0017_appends.sql")),
];

/// Functions, which are replaced at the end of every migration run.
const FUNCTIONS: &str = include_str!("../migrations/functions.sql");

/// Creates execution rows for an adopted log, at most 1,000 per transaction.
const ADOPT: &str = "select noetl.adopt_executions_1(1000)";

/// Key of the advisory lock for migrations: `noetl` in ASCII.
const LOCK: i64 = 0x6e_6f_65_74_6c;

/// Returns the schema version that this program needs.
pub(crate) fn known() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// Runs all pending migrations, replaces the functions, and adopts an existing log.
pub(crate) async fn migrate(
    connection: &mut PgConnection,
    location: &str,
) -> Result<(), OpenError> {
    let prepared = prepare(connection).await;
    prepared.map_err(|error| failed("the list of migrations", location, error))?;
    for (index, (name, sql)) in MIGRATIONS.iter().enumerate() {
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let run = run_one(connection, number, name, sql).await;
        run.map_err(|error| failed(name, location, error))?;
    }
    check(connection, location).await?;
    let replaced = replace_functions(connection).await;
    replaced.map_err(|error| failed("functions", location, error))?;
    let adopted = adopt(connection).await;
    adopted.map_err(|error| failed("the list of adopted executions", location, error))
}

/// Creates execution rows for an adopted log, one batch per transaction. A later run continues
/// after an interruption.
async fn adopt(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = "select to_regclass('noetl.adoption') is not null";
    if !sqlx::raw_sql(sql).fetch_one(&mut *connection).await?.try_get::<bool, _>(0)? {
        return Ok(());
    }
    let mut listed: i64 = 0;
    loop {
        let batch: i32 = sqlx::raw_sql(ADOPT).fetch_one(&mut *connection).await?.try_get(0)?;
        if batch == 0 {
            break;
        }
        listed += i64::from(batch);
        info!(executions = listed, "created rows for executions of adopted log");
    }
    Ok(())
}

/// Returns `true` if the JSON columns of the catalog are `jsonb`, as the published server creates them.
pub(crate) async fn is_binary(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let sql = "select coalesce(bool_or(data_type = 'jsonb'), false) \
               from information_schema.columns \
               where table_schema = 'noetl' and table_name = 'catalog' and column_name = 'payload'";
    sqlx::raw_sql(sql).fetch_one(connection).await?.try_get(0)
}

/// Returns an error if the schema is older or newer than this program needs.
pub(crate) async fn check(connection: &mut PgConnection, location: &str) -> Result<(), OpenError> {
    let found = version(connection).await;
    let found = found.map_err(|error| OpenError::Database {
        location: location.to_owned(),
        source: error.into(),
    })?;
    let (location, known) = (location.to_owned(), known());
    match found {
        found if found > known => Err(OpenError::Newer { location, found, known }),
        found if found < known => Err(OpenError::Older { location, found, known }),
        _ => Ok(()),
    }
}

/// Returns the schema version; 0 if there is no schema.
pub(crate) async fn version(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let sql = "select to_regclass('noetl.schema_migration') is not null";
    let exists: bool = sqlx::raw_sql(sql).fetch_one(&mut *connection).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let sql = "select coalesce(max(version), 0) from noetl.schema_migration";
    sqlx::raw_sql(sql).fetch_one(connection).await?.try_get(0)
}

async fn prepare(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = "create schema if not exists noetl;
        create table if not exists noetl.schema_migration (
            version integer primary key,
            name text not null,
            applied_at timestamptz not null default now()
        )";
    let mut transaction = connection.begin().await?;
    lock(&mut transaction).await?;
    sqlx::raw_sql(sql).execute(&mut *transaction).await?;
    transaction.commit().await
}

async fn run_one(
    connection: &mut PgConnection,
    number: i32,
    name: &str,
    sql: &'static str,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction).await?;
    let known = "select exists (select from noetl.schema_migration where version >= $1)";
    let done: bool = sqlx::query_scalar(known)
        .persistent(false)
        .bind(number)
        .fetch_one(&mut *transaction)
        .await?;
    if !done {
        sqlx::raw_sql(sql).execute(&mut *transaction).await?;
        let note = "insert into noetl.schema_migration (version, name) values ($1, $2)";
        sqlx::query(note)
            .persistent(false)
            .bind(number)
            .bind(name)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}

async fn replace_functions(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction).await?;
    sqlx::raw_sql(FUNCTIONS).execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Acquires the migration lock until the transaction ends.
pub(crate) async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let query = sqlx::query("select pg_advisory_xact_lock($1)").persistent(false);
    query.bind(LOCK).execute(connection).await?;
    Ok(())
}

fn failed(name: &str, location: &str, error: sqlx::Error) -> OpenError {
    OpenError::Migration {
        location: location.to_owned(),
        name: name.to_owned(),
        source: error.into(),
    }
}
