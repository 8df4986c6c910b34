//! An outbox with many rows, and plain updates of it: the limit its claims are measured against.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use sqlx::{Connection as _, PgConnection};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Fills an outbox with rows that wait.
pub(crate) async fn fill_postgres(url: &str, count: i64, body: &str) -> Outcome<()> {
    let mut connection = PgConnection::connect(url).await?;
    let sql = "insert into noetl.outbox (execution_id, event_id, tenant_id, subject, body,
         payload_codec)
         select 1 + n / 10, n, 'default', 'noetl.events.call.done', $2, 'json'
         from generate_series(1, $1) n";
    sqlx::query(sql).bind(count).bind(body).execute(&mut connection).await?;
    sqlx::raw_sql("vacuum analyze noetl.outbox").execute(&mut connection).await?;
    Ok(())
}

/// The same in a SQLite file that nobody has open.
pub(crate) fn fill_sqlite(file: &Path, count: i64, body: &str) -> Outcome<()> {
    let connection = Connection::open(file)?;
    connection.execute(
        "insert into outbox (execution_id, event_id, tenant_id, subject, payload, payload_codec,
         available_at, created_at, updated_at)
         with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1)
         select 1 + n / 10, n, 'default', 'noetl.events.call.done', ?2, 'json', 1, 1, 1 from n",
        (count, body),
    )?;
    Ok(())
}

/// Rows per second that plain updates by key reach: two of each row, as a claim and a mark are.
pub(crate) async fn postgres_rows_per_second(
    url: &str,
    count: i64,
    turns: usize,
    width: usize,
) -> Outcome<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let started = Instant::now();
    for turn in 0..turns {
        // From the far end, which no claim has touched.
        let last = count - i64::try_from(turn * width)?;
        let ids: Vec<i64> = (last - i64::try_from(width)? + 1..=last).collect();
        let claim = "update noetl.outbox set status = 'IN_FLIGHT', attempts = attempts + 1,
             locked_at = now(), updated_at = now() where outbox_id = any ($1) returning *";
        sqlx::query(claim).bind(&ids).fetch_all(&mut connection).await?;
        let mark = "update noetl.outbox set status = 'PUBLISHED', published_at = now(),
             updated_at = now() where outbox_id = any ($1)";
        sqlx::query(mark).bind(&ids).execute(&mut connection).await?;
    }
    Ok((turns * width) as f64 / started.elapsed().as_secs_f64())
}

/// The same in a SQLite file.
pub(crate) fn sqlite_rows_per_second(
    file: &Path,
    count: i64,
    turns: usize,
    width: usize,
) -> Outcome<f64> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    let started = Instant::now();
    for turn in 0..turns {
        let last = count - i64::try_from(turn * width)?;
        for sql in [
            "update outbox set status = 'IN_FLIGHT', attempts = attempts + 1, locked_at = 2,
             updated_at = 2 where outbox_id = ?1",
            "update outbox set status = 'PUBLISHED', published_at = 3, updated_at = 3
             where outbox_id = ?1",
        ] {
            let transaction = connection.transaction()?;
            {
                let mut update = transaction.prepare_cached(sql)?;
                for id in last - i64::try_from(width)? + 1..=last {
                    update.execute([id])?;
                }
            }
            transaction.commit()?;
        }
    }
    Ok((turns * width) as f64 / started.elapsed().as_secs_f64())
}
