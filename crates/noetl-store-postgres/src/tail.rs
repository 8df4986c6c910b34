//! Implements [`LogTail`]: reads of the event log by position.

use async_trait::async_trait;
use noetl_model::{CatalogId, EventId, Tenant};
use noetl_store::StoreError;
use noetl_store::tail::{Lane, LogTail, PAGE_BYTES, TailRow};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::unreadable;
use crate::event_rows::event_row;

#[async_trait]
impl LogTail for PostgresStore {
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        let sql = "select lane, position from noetl.lane order by lane";
        let lane = |row: &PgRow| {
            let number = u16::try_from(row.try_get::<i16, _>(0)?).map_err(unreadable)?;
            Ok(Lane { number, newest: row.try_get(1)? })
        };
        self.list("read the lanes of the log", || sqlx::query(sql), lane).await
    }

    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        let Ok(lane) = i16::try_from(lane) else { return Ok(Vec::new()) };
        let sql = include_str!("../queries/event_tail.sql");
        let make =
            || sqlx::query(sql).bind(lane).bind(after).bind(rows(limit)).bind(rows(PAGE_BYTES));
        self.in_order().list("follow the event log", make, tail_row).await
    }

    async fn tail_adopted(&self, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        let sql = include_str!("../queries/event_tail_adopted.sql");
        let make = || sqlx::query(sql).bind(after).bind(rows(limit)).bind(rows(PAGE_BYTES));
        self.in_order().list("follow the adopted log", make, tail_row).await
    }
}

fn tail_row(row: &PgRow) -> Result<TailRow, sqlx::Error> {
    Ok(TailRow {
        row: event_row(row)?,
        position: row.try_get(19)?,
        tenant: Tenant::new(row.try_get::<&str, _>(20)?),
        catalog: row.try_get::<Option<i64>, _>(21)?.map(CatalogId::new),
        previous: row.try_get::<Option<i64>, _>(22)?.map(EventId::new),
    })
}
