//! Runs SQL statements of operators, each on a connection of its own.
//!
//! The database converts rows to JSON, so that values of every type can be returned. A statement
//! runs in one transaction with a time limit.

use async_trait::async_trait;
use futures::TryStreamExt;
use noetl_model::{Map, Value};
use noetl_store::database::{ROWS_MAX, is_plain_name};
use noetl_store::{Connections, Database, Sql, SqlError, StoreError};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Connection, PgConnection, Postgres, Row};

use crate::PostgresStore;
use crate::error::store_error;

/// Time limit of a statement.
const TIMEOUT: &str = "30s";

/// Error codes of a statement that can't be nested in another one: syntax error, and feature not
/// supported.
const NOT_INSIDE: [&str; 2] = ["42601", "0A000"];

#[async_trait]
impl Database for PostgresStore {
    async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        if let Some(schema) = sql.schema.as_ref().filter(|schema| !is_plain_name(schema)) {
            return Err(SqlError::Schema(schema.clone()));
        }
        let connected = self.pool().connect_options().connect().await;
        let mut connection = connected.map_err(failed)?;
        let text = sql.text.trim().trim_end_matches(';');
        let run = match answers(text) {
            false => Err(None),
            true => {
                let inside = format!(
                    "with noetl_answer as ({text}\n) \
                     select row_to_json(noetl_answer)::text from noetl_answer"
                );
                match run(&mut connection, sql, inside, told).await {
                    Err(error) if is_not_inside(&error) => Err(None),
                    other => other.map_err(Some),
                }
            }
        };
        let run = match run {
            Err(None) => run_plain(&mut connection, sql, text).await,
            Err(Some(error)) => Err(error),
            Ok(rows) => Ok(rows),
        };
        // The outcome is known, so a failure to close doesn't matter.
        let _ = connection.close().await;
        run
    }

    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        let sql = "select c.relname::text from pg_class c \
                   where c.relnamespace = to_regnamespace('noetl') and c.relkind in ('r', 'p', 'v') \
                   and not c.relispartition order by c.relname::text collate \"C\"";
        self.list("list tables", || sqlx::query(sql), |row| row.try_get(0)).await
    }

    fn connections(&self) -> Option<Connections> {
        let pool = self.pool();
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
        let max = pool.options().get_max_connections();
        Some(Connections { max, open: pool.size(), idle })
    }
}

/// Returns `true` if a statement returns rows, judging by its first keyword.
fn answers(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    match first.to_ascii_lowercase().as_str() {
        "select" | "values" | "table" | "with" => true,
        "insert" | "update" | "delete" | "merge" => text.to_ascii_lowercase().contains("returning"),
        _ => false,
    }
}

async fn run_plain(
    connection: &mut PgConnection,
    sql: &Sql,
    text: &str,
) -> Result<Vec<Map>, SqlError> {
    run(connection, sql, text.to_owned(), plain).await
}

/// Runs a statement in a transaction.
async fn run(
    connection: &mut PgConnection,
    sql: &Sql,
    text: String,
    decode: fn(&PgRow) -> Result<Map, sqlx::Error>,
) -> Result<Vec<Map>, SqlError> {
    let mut transaction = connection.begin().await.map_err(failed)?;
    let settings = "select set_config('statement_timeout', $1, true), \
                    set_config('search_path', coalesce($2, current_setting('search_path')), true)";
    let path = sql.schema.as_ref().map(|schema| format!("\"{schema}\", public"));
    let set = sqlx::query(settings).persistent(false).bind(TIMEOUT).bind(path);
    set.execute(&mut *transaction).await.map_err(failed)?;
    let mut query = sqlx::query(AssertSqlSafe(text)).persistent(false);
    for parameter in &sql.parameters {
        query = bound(query, parameter);
    }
    let mut rows = Vec::new();
    {
        let mut answer = query.fetch(&mut *transaction);
        while let Some(row) = answer.try_next().await.map_err(failed)? {
            if rows.len() == ROWS_MAX {
                return Err(SqlError::TooLarge);
            }
            rows.push(decode(&row).map_err(failed)?);
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(rows)
}

fn bound<'q>(
    query: Query<'q, Postgres, PgArguments>,
    parameter: &'q Value,
) -> Query<'q, Postgres, PgArguments> {
    match parameter {
        Value::Null => query.bind(None::<String>),
        Value::Bool(value) => query.bind(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => query.bind(whole),
            None => query.bind(number.as_f64()),
        },
        Value::String(text) => query.bind(text),
        Value::Array(_) | Value::Object(_) => query.bind(parameter.to_string()),
    }
}

/// Decodes a row that the database returned as JSON.
fn told(row: &PgRow) -> Result<Map, sqlx::Error> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Decodes a row of a statement that can't be nested. Such statements return text.
fn plain(row: &PgRow) -> Result<Map, sqlx::Error> {
    let columns = row.columns().iter().enumerate();
    Ok(columns.map(|(place, column)| (column.name().to_owned(), value(row, place))).collect())
}

fn value(row: &PgRow, place: usize) -> Value {
    if let Ok(text) = row.try_get::<Option<String>, _>(place) {
        return text.into();
    }
    if let Ok(whole) = row.try_get::<Option<i64>, _>(place) {
        return whole.into();
    }
    row.try_get::<Option<bool>, _>(place).ok().flatten().into()
}

fn is_not_inside(error: &SqlError) -> bool {
    matches!(error, SqlError::Refused(text) if NOT_INSIDE.iter().any(|code| text.ends_with(&format!("({code})"))))
}

/// Converts an error. The message and code of a rejected statement are passed on to its author.
fn failed(error: sqlx::Error) -> SqlError {
    match &error {
        sqlx::Error::Database(said) => {
            let code = said.code().unwrap_or_default();
            SqlError::Refused(format!("{} ({code})", said.message()))
        }
        sqlx::Error::Encode(_) | sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
            SqlError::Refused(error.to_string())
        }
        _ => SqlError::Store(store_error("run a statement", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_rows_to_tell_are_known_by_how_they_begin() {
        for tells in [
            "select 1",
            "SELECT*from t",
            "with a as (select 1) select * from a",
            "insert into t values (1) RETURNING id",
            "(select 1)",
            "values (1)",
        ] {
            assert_eq!(answers(tells), !tells.starts_with('('), "{tells}");
        }
        for silent in ["insert into t values (1)", "create table t ()", "show all", ""] {
            assert!(!answers(silent), "{silent}");
        }
    }
}
