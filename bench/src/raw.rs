//! The raw rate: rows of the same kind of work, inserted plainly into tables with the same columns,
//! indexes and constraints, in transactions of the same size, as durable, without an engine and
//! without asking what is there.

use std::time::Instant;

use noetl_model::row::EventRow;
use noetl_model::row::body::AppendRow;
use noetl_store::Append;
use rusqlite::{Connection, params};
use sqlx::{Connection as _, PgConnection};

use crate::work::{ROWS_PER_STEP, Work};

/// Callers that take turns: while one's batch commits, the other makes its next, so that a store has
/// one batch per transaction.
pub(crate) const CALLERS: usize = 2;

/// One transaction's worth: the next batch of whoever's turn it is.
fn batch(work: &mut [Work], round: usize) -> Vec<Append> {
    work[round % CALLERS].next()
}

fn workers(width: usize) -> Vec<Work> {
    (0..CALLERS).map(|caller| Work::new(caller, width)).collect()
}

/// Returns the rows of the log that an append writes.
fn encoded(append: &Append) -> Vec<AppendRow> {
    let events: Vec<EventRow> =
        append.events.iter().map(|event| EventRow::from(&**event)).collect();
    AppendRow::encode(&events)
}

/// Rows per second that one connection writes to a SQLite file that a store has made.
pub(crate) fn sqlite_rows_per_second(
    file: &std::path::Path,
    steps: usize,
    width: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 32_000)?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    let mut work = workers(width);
    let rounds = (steps / width).max(1);
    let (mut number, started) = (0_i64, Instant::now());
    for round in 0..rounds {
        let appends = batch(&mut work, round);
        let transaction = connection.transaction()?;
        {
            let mut row = transaction.prepare_cached(
                "insert into event_append (execution_id, first_seq, last_seq, last_event_id,
                 created_at, body) values (?, ?, ?, ?, ?, ?)",
            )?;
            let mut execution = transaction.prepare_cached(
                "insert into execution (id, tenant_id, start_key, catalog_id, path,
                 playbook_version, status, version, started_at, updated_at, steps_entered,
                 steps_completed, steps_failed, steps_running, current_step, last_event_id)
                 values (?, 'default', 1, 7, 'demo/greet', 1, 'RUNNING', 1, 1, 1, 1, 0, 0, 1, ?, 1)",
            )?;
            let mut command = transaction.prepare_cached(
                "insert into command (id, execution_id, issued_seq, step, tool, attempt, state,
                 worker_id, issued_at) values (?, ?, 3, ?, 'python', 1, 'CLAIMED', 'local-1', 1)",
            )?;
            for append in &appends {
                number += 1;
                for AppendRow { head, body } in encoded(append) {
                    row.execute(params![
                        head.execution.get(),
                        i64::try_from(head.first_seq.0)?,
                        i64::try_from(head.last_seq.0)?,
                        head.last_event.get(),
                        head.created_at.as_micros(),
                        body,
                    ])?;
                }
                execution.execute(params![number, append.row.current_step.as_deref()])?;
                command.execute(params![number, append.row.id.get(), "transform_orders"])?;
            }
        }
        transaction.commit()?;
    }
    let rows = rounds * width * ROWS_PER_STEP;
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

/// Rows per second that one connection writes with plain multi-row inserts into copies of a Postgres
/// store's tables.
pub(crate) async fn postgres_rows_per_second(
    url: &str,
    steps: usize,
    width: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(
        // Partitioned as the original is: a row finds its partition there too.
        "drop schema if exists raw cascade; create schema raw;
         create table raw.event_append (like noetl.event_append including all)
             partition by range (execution_id);
         create table raw.event_append_all partition of raw.event_append default;
         create table raw.execution (like noetl.execution including all);
         create table raw.command (like noetl.command including all)",
    )
    .execute(&mut connection)
    .await?;
    let mut work = workers(width);
    let rounds = (steps / width).max(1);
    let (mut number, started) = (0_i64, Instant::now());
    for round in 0..rounds {
        let appends = batch(&mut work, round);
        let mut transaction = connection.begin().await?;
        let rows: Vec<AppendRow> = appends.iter().flat_map(encoded).collect();
        macro_rules! column {
            (|$row:ident| $value:expr) => {
                rows.iter().map(|$row| $value).collect::<Vec<_>>()
            };
        }
        let events = sqlx::query(
            "insert into raw.event_append (execution_id, first_seq, last_seq, last_event_id,
             created_at, lane, position, body)
             select a, b, c, d, now() at time zone 'utc', 0, c, e
             from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
                 t (a, b, c, d, e)",
        )
        .bind(column!(|row| row.head.execution.get()))
        .bind(column!(|row| row.head.first_seq.0.cast_signed()))
        .bind(column!(|row| row.head.last_seq.0.cast_signed()))
        .bind(column!(|row| row.head.last_event.get()))
        .bind(column!(|row| row.body.as_str()));
        events.execute(&mut *transaction).await?;
        let numbers: Vec<i64> = (number..).take(appends.len()).collect();
        number += i64::try_from(appends.len())?;
        let ids: Vec<i64> = appends.iter().map(|append| append.row.id.get()).collect();
        let executions = sqlx::query(
            "insert into raw.execution (execution_id, status, start_time, updated_at, catalog_id,
             path, path_folded, playbook_version, start_key, version, last_event_id,
             steps_entered, steps_completed, steps_failed, steps_running, current_step, origin)
             select n, 'RUNNING', now(), now(), 7, 'demo/greet', 'demo/greet', 1, 1, 1, 1, 1, 0, 0,
             1, 'transform_orders', 'own' from unnest($1::bigint[]) n",
        );
        executions.bind(&numbers).execute(&mut *transaction).await?;
        let commands = sqlx::query(
            "insert into raw.command (command_id, event_id, execution_id, step_name, tool_kind,
             status, worker_id, claimed_at, issued_seq)
             select n, n, e, 'transform_orders', 'python', 'CLAIMED', 'local-1', now(), 3
             from unnest($1::bigint[], $2::bigint[]) t (n, e)",
        );
        commands.bind(&numbers).bind(&ids).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
    let rows = rounds * width * ROWS_PER_STEP;
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

/// Fills a store's list of executions with `count` that are over.
pub(crate) async fn fill_postgres(url: &str, count: usize) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let sql = "insert into noetl.execution (execution_id, status, start_time, updated_at, end_time,
         catalog_id, path, path_folded, playbook_version, start_key, version, last_event_id,
         terminal_event_id, steps_entered, steps_completed, steps_failed, steps_running, origin)
         select n, 'COMPLETED', now() - n * interval '1 second', now(), now(), 7, 'demo/greet',
         'demo/greet', 1, 1, 1, 1, 1, 1, 1, 0, 0, 'own' from generate_series(1, $1) n";
    sqlx::query(sql)
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .execute(&mut connection)
        .await?;
    sqlx::query("analyze noetl.execution").execute(&mut connection).await?;
    Ok(())
}

/// The same in a SQLite file that nobody has open.
pub(crate) fn fill_sqlite(file: &std::path::Path, count: usize) -> rusqlite::Result<()> {
    let connection = Connection::open(file)?;
    connection.execute(
        "insert into execution (id, tenant_id, start_key, catalog_id, path, playbook_version,
         status, version, started_at, updated_at, ended_at, steps_entered, steps_completed,
         steps_failed, steps_running, last_event_id)
         with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1)
         select n, 'default', 1, 7, 'demo/greet', 1, 'COMPLETED', 1, n, n, n, 1, 1, 0, 0, 1 from n",
        [i64::try_from(count).unwrap_or(i64::MAX)],
    )?;
    Ok(())
}

/// Takes the number of a transaction: those that write are numbered in their order.
pub(crate) async fn postgres_transaction(url: &str) -> Result<f64, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let number = sqlx::query_scalar("select txid_current()::double precision");
    number.fetch_one(&mut connection).await
}

/// Bytes of a database, as the server counts them.
pub(crate) fn postgres_bytes(url: &str) -> Result<f64, Box<dyn std::error::Error>> {
    let query = "select pg_database_size(current_database())";
    let output =
        std::process::Command::new("psql").args(["-X", "-A", "-t", "-c", query, url]).output()?;
    if !output.status.success() {
        return Err("psql could not say how large a database is".into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}
