//! What system pools ask: rows of a full outbox, and rows of the stream handed in.

use std::sync::Arc;
use std::time::Instant;

use noetl_model::event::ImportedEvent;
use noetl_model::{EventId, ExecutionId, Tenant, Timestamp};
use noetl_store::Import;
use serde_json::json;

use crate::raw_outbox;
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
        Medium::Postgres(url) => {
            raw_outbox::fill_postgres(url, OUTBOX_ROWS, &body().to_string()).await?
        }
        _ => {
            let (directory, file) = place.close().await;
            raw_outbox::fill_sqlite(
                &file.ok_or("a store in a file")?,
                OUTBOX_ROWS,
                &body().to_string(),
            )?;
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
        Medium::Postgres(url) => {
            raw_outbox::postgres_rows_per_second(url, OUTBOX_ROWS, CLAIMS, CLAIM).await?
        }
        _ => {
            let (directory, file) = place.close().await;
            let raw = raw_outbox::sqlite_rows_per_second(
                &file.ok_or("a store in a file")?,
                OUTBOX_ROWS,
                CLAIMS,
                CLAIM,
            )?;
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
        let taken = stage.control.publishing.imports.import(batch.collect()).await?;
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
        row: ImportedEvent {
            event_type: Some("call.done".to_owned()),
            node_name: Some(Arc::from("transform_orders")),
            status: Some("COMPLETED".to_owned()),
            worker: Some(Arc::from("worker-1")),
            result: Some(body()),
            meta: Some(json!({"command_id": "1:transform_orders:2", "actionable": true})),
            ..ImportedEvent::default()
        },
    }
}

fn body() -> serde_json::Value {
    json!({"status": "COMPLETED", "context": {"rows": 128, "path": "orders/2026/01.csv"}})
}
