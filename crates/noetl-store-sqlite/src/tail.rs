//! Implements [`LogTail`]: reads of the event log by position. A file has a single writer, and
//! therefore a single commit lane.

use async_trait::async_trait;
use noetl_model::{CatalogId, EventId, Tenant};
use noetl_store::StoreError;
use noetl_store::tail::{Lane, LogTail, PAGE_BYTES, TailRow};
use rusqlite::Row;

use crate::SqliteStore;
use crate::decoded_event::event_row;
use crate::encoded_append::rows;

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
            let sql = include_str!("../queries/event_tail.sql");
            let mut read = connection.prepare_cached(sql)?;
            let mut found = read.query((after, rows(limit)))?;
            let mut page = Vec::new();
            let mut bytes = 0;
            while bytes < PAGE_BYTES
                && let Some(row) = found.next()?
            {
                let row = tail_row(row)?;
                let texts = [&row.row.context, &row.row.result, &row.row.meta];
                bytes +=
                    texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum::<usize>();
                page.push(row);
            }
            Ok(page)
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
