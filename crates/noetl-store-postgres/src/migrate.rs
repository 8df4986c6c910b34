//! Brings the schema up to date: numbered files, forward only, each in its own transaction, one
//! process at a time.

use sqlx::{Connection, PgConnection};

use crate::OpenError;

/// The migrations in order; a migration's number is its place in this list, from 1.
const MIGRATIONS: [(&str, &str); 3] = [
    ("0001_core", include_str!("../migrations/0001_core.sql")),
    ("0002_traffic", include_str!("../migrations/0002_traffic.sql")),
    ("0003_keeping", include_str!("../migrations/0003_keeping.sql")),
];

/// Replaced at the end of every run.
const FUNCTIONS: &str = include_str!("../migrations/functions.sql");

/// The advisory lock that migrations are run under: `noetl` in ASCII.
const LOCK: i64 = 0x6e_6f_65_74_6c;

/// The version this program needs.
pub(crate) fn known() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// Runs what has not been run.
pub(crate) async fn migrate(connection: &mut PgConnection, place: &str) -> Result<(), OpenError> {
    let prepared = prepare(connection).await;
    prepared.map_err(|error| failed("the list of migrations", place, error))?;
    for (index, (name, sql)) in MIGRATIONS.iter().enumerate() {
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let run = run_one(connection, number, name, sql).await;
        run.map_err(|error| failed(name, place, error))?;
    }
    check(connection, place).await?;
    let replaced = replace_functions(connection).await;
    replaced.map_err(|error| failed("functions", place, error))
}

/// Refuses a schema that this program does not fit.
pub(crate) async fn check(connection: &mut PgConnection, place: &str) -> Result<(), OpenError> {
    let found = version(connection).await;
    let found = found
        .map_err(|error| OpenError::Database { place: place.to_owned(), source: error.into() })?;
    let (place, known) = (place.to_owned(), known());
    match found {
        found if found > known => Err(OpenError::Newer { place, found, known }),
        found if found < known => Err(OpenError::Older { place, found, known }),
        _ => Ok(()),
    }
}

/// The schema's version; 0 when there is none.
pub(crate) async fn version(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let sql = "select to_regclass('noetl.schema_migration') is not null";
    let exists: bool = sqlx::query_scalar(sql).fetch_one(&mut *connection).await?;
    if !exists {
        return Ok(0);
    }
    let sql = "select coalesce(max(version), 0) from noetl.schema_migration";
    sqlx::query_scalar(sql).fetch_one(connection).await
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
    let done: bool = sqlx::query_scalar(known).bind(number).fetch_one(&mut *transaction).await?;
    if !done {
        sqlx::raw_sql(sql).execute(&mut *transaction).await?;
        let note = "insert into noetl.schema_migration (version, name) values ($1, $2)";
        sqlx::query(note).bind(number).bind(name).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

async fn replace_functions(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction).await?;
    sqlx::raw_sql(FUNCTIONS).execute(&mut *transaction).await?;
    transaction.commit().await
}

/// Held until the transaction ends.
pub(crate) async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK).execute(connection).await?;
    Ok(())
}

fn failed(name: &str, place: &str, error: sqlx::Error) -> OpenError {
    OpenError::Migration { place: place.to_owned(), name: name.to_owned(), source: error.into() }
}
