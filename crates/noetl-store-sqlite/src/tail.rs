//! Implements [`LogTail`]: reads of the event log by position. A file has a single writer, and
//! therefore a single commit lane.

use async_trait::async_trait;
use noetl_model::{CatalogId, EventId, ExecutionId, Seq, Tenant};
use noetl_store::StoreError;
use noetl_store::tail::{Lane, LogTail, PAGE_BYTES, TailRow};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::append_log::event_rows;
use crate::decoded_event::event_row;
use crate::encoded_append::rows;
use crate::row_log;

const LANE: u16 = 0;

#[async_trait]
impl LogTail for SqliteStore {
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        self.read("read the newest position", |connection| {
            let sql = "select coalesce(max(last_position), 0) from log_head";
            let newest = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(vec![Lane { number: LANE, newest }])
        })
        .await
    }

    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        if lane != LANE {
            return Ok(Vec::new());
        }
        self.read("follow the event log", move |connection| {
            let mut page = Page { rows: Vec::new(), bytes: 0, limit };
            let mut read = connection.prepare_cached(include_str!("../queries/row_tail.sql"))?;
            let mut found = read.query((after, rows(limit)))?;
            while page.has_room()
                && let Some(row) = found.next()?
            {
                page.add(tail_row(row)?);
            }
            let mut read = connection.prepare_cached(include_str!("../queries/append_tail.sql"))?;
            let mut found = read.query([after])?;
            while page.has_room()
                && let Some(append) = found.next()?
            {
                let rows = append_rows(connection, append)?;
                rows.into_iter().filter(|row| row.position > after).for_each(|row| page.add(row));
            }
            Ok(page.rows)
        })
        .await
    }

    async fn tail_adopted(&self, _after: i64, _limit: usize) -> Result<Vec<TailRow>, StoreError> {
        // SQLite files are never adopted from another program.
        Ok(Vec::new())
    }
}

fn tail_row(row: &Row<'_>) -> rusqlite::Result<TailRow> {
    Ok(TailRow {
        row: event_row(row)?,
        position: row.get(19)?,
        tenant: Tenant::new(&row.get::<_, String>(20)?),
        catalog: row.get::<_, Option<i64>>(21)?.map(CatalogId::new),
        previous: row.get::<_, Option<i64>>(22)?.map(EventId::new),
    })
}

/// A page that ends after `limit` rows or [`PAGE_BYTES`].
struct Page {
    rows: Vec<TailRow>,
    bytes: usize,
    limit: usize,
}

impl Page {
    fn has_room(&self) -> bool {
        self.rows.len() < self.limit && self.bytes < PAGE_BYTES
    }

    /// Adds a row if there is room.
    fn add(&mut self, row: TailRow) {
        if self.has_room() {
            let texts = [&row.row.context, &row.row.result, &row.row.meta];
            self.bytes +=
                texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum::<usize>();
            self.rows.push(row);
        }
    }
}

/// Returns the events of an append with their positions.
fn append_rows(connection: &Connection, append: &Row<'_>) -> rusqlite::Result<Vec<TailRow>> {
    let execution = ExecutionId::new(append.get(5)?);
    let events = event_rows(execution, append)?;
    let last: i64 = append.get(6)?;
    let tenant = Tenant::new(&append.get::<_, String>(7)?);
    let catalog = append.get::<_, Option<i64>>(8)?.map(CatalogId::new);
    let mut previous = append.get::<_, Option<i64>>(9)?.map(EventId::new);
    if let (None, Some(first)) = (previous, events.first()) {
        // The event before the first append is one of an earlier version, if any.
        previous = row_log::id_at(connection, execution, Seq(first.seq.0.saturating_sub(1)))?;
    }
    let first = last + 1 - rows(events.len());
    Ok((first..)
        .zip(events)
        .map(|(position, row)| {
            let previous = previous.replace(row.event_id);
            TailRow { position, tenant: tenant.clone(), catalog, previous, row }
        })
        .collect())
}
