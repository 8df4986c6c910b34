//! Implements [`LogTail`]: reads of the event log by position.

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, ExecutionId, Map, Origin, Tenant};
use noetl_store::StoreError;
use noetl_store::tail::{Lane, LogTail, PAGE_BYTES, TailRow};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{bounded, rows};
use crate::column::unreadable;
use crate::event_rows::{append, beside_row, event_row};

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
        let (from, count) = (after.max(0), bounded(rows(limit)));
        let make = || sqlx::query(sql).bind(lane).bind(from).bind(count).bind(rows(PAGE_BYTES));
        let read = self.in_order().list("follow the event log", make, tail_rows).await?;
        let rows = read.into_iter().flatten().filter(|row| row.position > after);
        Ok(rows.take(limit).collect())
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

/// Decodes a row of `event_tail.sql`: an event or the events of an append.
fn tail_rows(row: &PgRow) -> Result<Vec<TailRow>, sqlx::Error> {
    let execution = ExecutionId::new(row.try_get(0)?);
    let Some(events) = append(row, execution, beside_row(23))? else {
        return Ok(vec![tail_row(row)?]);
    };
    let tenant = Tenant::new(row.try_get::<&str, _>(20)?);
    let catalog = row.try_get::<Option<i64>, _>(21)?.map(CatalogId::new);
    let mut previous = row.try_get::<Option<i64>, _>(22)?.map(EventId::new);
    let first = row.try_get::<i64, _>(19)? - rows(events.len()) + 1;
    let mut read = Vec::with_capacity(events.len());
    for (position, event) in (first..).zip(events) {
        let own = OwnColumns::from_row(&event);
        let before = previous.replace(event.event_id);
        read.push(TailRow {
            position,
            tenant: tenant.clone(),
            catalog: own.catalog.or(catalog),
            previous: own.previous.or(before),
            row: event,
        });
    }
    Ok(read)
}

/// Columns that an imported row may have brought along.
#[derive(Default)]
struct OwnColumns {
    catalog: Option<CatalogId>,
    previous: Option<EventId>,
}

impl OwnColumns {
    fn from_row(row: &EventRow) -> Self {
        let more = row.more.as_deref().filter(|_| row.origin == Origin::Imported);
        let Some(Ok(more)) = more.map(serde_json::from_str::<Map>) else { return Self::default() };
        let number = |name: &str| more.get(name)?.as_i64();
        Self {
            catalog: number("catalog_id").map(CatalogId::new),
            previous: number("prev_event_id").map(EventId::new),
        }
    }
}
