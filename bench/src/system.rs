//! What system pools ask: rows of a full outbox, and rows of the stream handed in.

use std::sync::Arc;
use std::time::Instant;

use noetl_model::event::Imported;
use noetl_model::{EventId, ExecutionId, Tenant, Timestamp};
use noetl_store::Import;
use rusqlite::Connection;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::report::line;
use crate::stage::{Medium, Place, Stage};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Rows in the outbox while it is measured.
const OUTBOX_ROWS: i64 = 1_000_000;

/// Rows per claim, as publishers ask for by default.
const CLAIM: usize = 100;

/// Claims per measurement.
const CLAIMS: usize = 500;

/// Rows per batch handed in, as the published materialiser pulls.
const BATCH: usize = 200;

/// Claims and marks of an outbox with a million rows, and how long it takes to count them, beside
/// plain updates of as many rows by their keys.
pub(crate) async fn outbox(medium: &Medium) -> Outcome<String> {
    let mut place = Place::open(medium).await?;
    match medium {
        Medium::Postgres(url) => fill_postgres(url).await?,
        _ => {
            let (directory, file) = place.close().await;
            fill_sqlite(&file.ok_or("a store in a file")?)?;
            place = Place::again(directory.ok_or("a store in a directory")?)?;
        }
    }
    let mut counts = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        if place.store.pending().await? != OUTBOX_ROWS.unsigned_abs() {
            return Err("not all rows are counted".into());
        }
        counts.push(started.elapsed().as_secs_f64() * 1e3);
    }
    counts.sort_by(f64::total_cmp);
    let started = Instant::now();
    for _ in 0..CLAIMS {
        let rows = place.store.claim(CLAIM).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        if place.store.mark_published(&ids).await? != CLAIM {
            return Err("a claim that was not whole".into());
        }
    }
    let rows = (CLAIMS * CLAIM) as f64 / started.elapsed().as_secs_f64();
    let raw = match medium {
        Medium::Postgres(url) => raw_postgres(url).await?,
        _ => {
            let (directory, file) = place.close().await;
            let raw = raw_sqlite(&file.ok_or("a store in a file")?)?;
            drop(directory);
            raw
        }
    };
    let fields = [
        ("rows", OUTBOX_ROWS as f64),
        ("claimed_and_published_per_second", rows),
        ("raw_rows_per_second", raw),
        ("of_raw", rows / raw),
        ("count_ms", counts[counts.len() / 2]),
    ];
    Ok(line("outbox", medium.name(), &fields))
}

async fn fill_postgres(url: &str) -> Outcome<()> {
    let mut connection = PgConnection::connect(url).await?;
    let sql = "insert into noetl.outbox (execution_id, event_id, tenant_id, subject, body,
         payload_codec)
         select 1 + n / 10, n, 'default', 'noetl.events.call.done', $2, 'json'
         from generate_series(1, $1) n";
    let body = body().to_string();
    sqlx::query(sql).bind(OUTBOX_ROWS).bind(body).execute(&mut connection).await?;
    sqlx::raw_sql("vacuum analyze noetl.outbox").execute(&mut connection).await?;
    Ok(())
}

fn fill_sqlite(file: &std::path::Path) -> Outcome<()> {
    let connection = Connection::open(file)?;
    connection.execute(
        "insert into outbox (execution_id, event_id, tenant_id, subject, payload, payload_codec,
         available_at, created_at, updated_at)
         with recursive n (n) as (select 1 union all select n + 1 from n where n < ?1)
         select 1 + n / 10, n, 'default', 'noetl.events.call.done', ?2, 'json', 1, 1, 1 from n",
        (OUTBOX_ROWS, body().to_string()),
    )?;
    Ok(())
}

/// Rows per second that plain updates by key reach: two of each row, as a claim and a mark are.
async fn raw_postgres(url: &str) -> Outcome<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let started = Instant::now();
    for turn in 0..CLAIMS {
        // From the far end, which no claim has touched.
        let last = OUTBOX_ROWS - i64::try_from(turn * CLAIM)?;
        let ids: Vec<i64> = (last - i64::try_from(CLAIM)? + 1..=last).collect();
        let claim = "update noetl.outbox set status = 'IN_FLIGHT', attempts = attempts + 1,
             locked_at = now(), updated_at = now() where outbox_id = any ($1) returning *";
        sqlx::query(claim).bind(&ids).fetch_all(&mut connection).await?;
        let mark = "update noetl.outbox set status = 'PUBLISHED', published_at = now(),
             updated_at = now() where outbox_id = any ($1)";
        sqlx::query(mark).bind(&ids).execute(&mut connection).await?;
    }
    Ok((CLAIMS * CLAIM) as f64 / started.elapsed().as_secs_f64())
}

fn raw_sqlite(file: &std::path::Path) -> Outcome<f64> {
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    let started = Instant::now();
    for turn in 0..CLAIMS {
        let last = OUTBOX_ROWS - i64::try_from(turn * CLAIM)?;
        for sql in [
            "update outbox set status = 'IN_FLIGHT', attempts = attempts + 1, locked_at = 2,
             updated_at = 2 where outbox_id = ?1",
            "update outbox set status = 'PUBLISHED', published_at = 3, updated_at = 3
             where outbox_id = ?1",
        ] {
            let transaction = connection.transaction()?;
            {
                let mut update = transaction.prepare_cached(sql)?;
                for id in last - i64::try_from(CLAIM)? + 1..=last {
                    update.execute([id])?;
                }
            }
            transaction.commit()?;
        }
    }
    Ok((CLAIMS * CLAIM) as f64 / started.elapsed().as_secs_f64())
}

/// Rows of the stream handed in, in batches over 50 executions, beside plain inserts of rows.
pub(crate) async fn project(medium: &Medium, rows: usize, raw: Option<f64>) -> Outcome<String> {
    let stage = Stage::open(medium, 1).await?;
    let batches = (rows / BATCH).max(1);
    let mut number = 0_i64;
    let started = Instant::now();
    for _ in 0..batches {
        let batch = (0..BATCH).map(|place| {
            number += 1;
            (place, import(number))
        });
        let taken = stage.control.intake.take(batch.collect()).await?;
        if taken.kept != BATCH {
            return Err(format!("{} rows of {BATCH} were kept", taken.kept).into());
        }
    }
    let rate = (batches * BATCH) as f64 / started.elapsed().as_secs_f64();
    drop(stage.close().await.close().await);
    let mut fields = vec![("rows_per_second", rate)];
    if let Some(raw) = raw {
        fields.extend([("raw_rows_per_second", raw), ("of_raw", rate / raw)]);
    }
    Ok(line("project", medium.name(), &fields))
}

fn import(number: i64) -> Import {
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(1 + number % 50),
        event: EventId::new(number),
        at: Timestamp::from_micros(1_767_225_600_000_000 + number),
        row: Imported {
            event_type: Some("call.done".to_owned()),
            node_name: Some(Arc::from("transform_orders")),
            status: Some("COMPLETED".to_owned()),
            worker: Some(Arc::from("worker-1")),
            result: Some(body()),
            meta: Some(json!({"command_id": "1:transform_orders:2", "actionable": true})),
            ..Imported::default()
        },
    }
}

fn body() -> serde_json::Value {
    json!({"status": "COMPLETED", "context": {"rows": 128, "path": "orders/2026/01.csv"}})
}
