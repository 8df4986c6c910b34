//! The raw limit: rows of the same size through prepared inserts, one transaction per batch, fully
//! durable, without an engine, and the same two indexes' worth of work left out.

use std::sync::Arc;
use std::time::Instant;

use noetl_model::Event;
use noetl_model::row::EventRow;
use rusqlite::{Connection, params};

/// Rows written for one measurement.
const ROWS: usize = 200_000;

/// Rows a step of the engine writes, so that batches are of the same size as the journal's.
const ROWS_PER_STEP: usize = 7;

/// Rows per second that one connection writes in batches of `concurrency` steps.
pub(crate) fn rows_per_second(
    sample: &[Arc<Event>],
    concurrency: usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let rows: Vec<EventRow> = sample.iter().map(|event| EventRow::from(&**event)).collect();
    let batch = concurrency * ROWS_PER_STEP;
    // A batch of one step costs a sync each; fewer rows say as much in less time.
    let total = if concurrency == 1 { ROWS / 20 } else { ROWS };
    let directory = tempfile::tempdir_in(".")?;
    let mut connection = Connection::open(directory.path().join("raw.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 16_000)?;
    connection.execute_batch(
        "create table row (
            position integer primary key, execution_id integer, seq integer, event_id integer,
            created_at integer, event_type text, node_name text, node_type text, status text,
            command_id integer, worker_id text, meta text, context text, result text
        ) strict",
    )?;
    let started = Instant::now();
    let mut written = 0;
    while written < total {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "insert into row (execution_id, seq, event_id, created_at, event_type, node_name,
                 node_type, status, command_id, worker_id, meta, context, result)
                 values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?;
            for at in written..written + batch {
                let row = &rows[at % rows.len()];
                insert.execute(params![
                    row.execution_id.get(),
                    i64::try_from(at)?,
                    row.event_id.get(),
                    row.created_at.as_micros(),
                    row.event_type,
                    row.node_name,
                    row.node_type,
                    row.status,
                    row.command_id.map(|id| id.get()),
                    row.worker_id,
                    row.meta,
                    row.context,
                    row.result,
                ])?;
            }
        }
        transaction.commit()?;
        written += batch;
    }
    Ok(written as f64 / started.elapsed().as_secs_f64())
}
