//! Implements [`OutboxStore`] on the table `outbox`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, ExecutionId, Tenant, Timestamp};
use noetl_store::outbox::{CODEC, Envelope, cut, subject};
use noetl_store::{OutboxRow, OutboxStore, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, unreadable};
use crate::encoded_append::{EncodedAppend, place, rows};

#[async_trait]
impl OutboxStore for SqliteStore {
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let lease = self.outbox().lease;
        self.write("claim rows of the outbox", move |connection, now| {
            let sql = include_str!("../queries/outbox_claim.sql");
            let mut claim = connection.prepare_cached(sql)?;
            let ended = now.minus(lease).as_micros();
            let given = (now.as_micros(), ended, rows(limit), rows(bytes));
            let claimed = claim.query_map(given, row)?;
            let mut claimed = claimed.collect::<rusqlite::Result<Vec<OutboxRow>>>()?;
            claimed.sort_unstable_by_key(|row| row.id);
            Ok(claimed)
        })
        .await
    }

    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        let ids = ids.to_vec();
        self.write("mark rows of the outbox", move |connection, now| {
            let sql = include_str!("../queries/outbox_mark_published.sql");
            let mut mark = connection.prepare_cached(sql)?;
            ids.iter().try_fold(0, |count, id| Ok(count + mark.execute((id, now.as_micros()))?))
        })
        .await
    }

    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError> {
        let error = cut(error).to_owned();
        self.write("mark a row of the outbox", move |connection, now| {
            let sql = include_str!("../queries/outbox_mark_failed.sql");
            let mut mark = connection.prepare_cached(sql)?;
            let until = now.plus(delay).as_micros();
            Ok(mark.execute((id, now.as_micros(), until, error))? == 1)
        })
        .await
    }

    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError> {
        self.write("purge the outbox", move |connection, now| {
            let sql = include_str!("../queries/outbox_purge.sql");
            connection.prepare_cached(sql)?.execute([now.minus(older_than).as_micros()])
        })
        .await
    }

    async fn pending(&self) -> Result<u64, StoreError> {
        let (clock, lease) = (self.clock(), self.outbox().lease);
        self.read("count rows of the outbox", move |connection| {
            let now = clock.now();
            let sql = include_str!("../queries/outbox_pending.sql");
            let mut pending = connection.prepare_cached(sql)?;
            let given = (now.as_micros(), now.minus(lease).as_micros());
            pending.query_row(given, |row| count(row, 0))
        })
        .await
    }
}

/// Writes events to the outbox in the transaction that appends them.
pub(crate) struct OutboxWriter<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    now: Timestamp,
}

impl<'c> OutboxWriter<'c> {
    pub(crate) fn new(connection: &'c Connection, now: Timestamp) -> rusqlite::Result<Self> {
        let sql = include_str!("../queries/outbox_insert.sql");
        Ok(Self { connection, insert: connection.prepare_cached(sql)?, now })
    }

    /// Adds the events of an appended item.
    pub(crate) fn add(&mut self, item: &EncodedAppend) -> rusqlite::Result<()> {
        let (tenant, catalog) = self.sender(item)?;
        let mut previous = self.event_before(&item.events)?;
        for row in &item.events {
            self.add_row(&tenant, catalog, previous, row)?;
            previous = Some(row.event_id);
        }
        Ok(())
    }

    /// Adds an event to the outbox.
    pub(crate) fn add_row(
        &mut self,
        tenant: &Tenant,
        catalog: CatalogId,
        previous: Option<EventId>,
        row: &EventRow,
    ) -> rusqlite::Result<()> {
        let payload = Envelope { tenant, catalog, previous, row }.payload();
        self.insert.execute(params![
            tenant.as_str(),
            row.execution_id.get(),
            row.event_id.get(),
            subject(row.event_type.as_deref()),
            payload.map_err(|error| unreadable(0, error))?,
            CODEC,
            self.now.as_micros(),
        ])?;
        Ok(())
    }

    fn sender(&self, item: &EncodedAppend) -> rusqlite::Result<(Tenant, CatalogId)> {
        let sql = "select tenant_id, catalog_id from execution where id = ?1";
        let mut find = self.connection.prepare_cached(sql)?;
        find.query_row([item.row.id.get()], |row| {
            Ok((Tenant::new(row.get::<_, String>(0)?), CatalogId::new(row.get(1)?)))
        })
    }

    /// Returns the ID of the event that precedes these rows.
    pub(crate) fn event_before(&self, rows: &[EventRow]) -> rusqlite::Result<Option<EventId>> {
        let Some(EventRow { execution_id, seq, .. }) = rows.first() else {
            return Ok(None);
        };
        let sql = include_str!("../queries/event_id_at.sql");
        let mut find = self.connection.prepare_cached(sql)?;
        let found = find.query_row((execution_id.get(), place(*seq) - 1), |row| row.get(0));
        Ok(found.optional()?.map(EventId::new))
    }
}

fn row(row: &Row<'_>) -> rusqlite::Result<OutboxRow> {
    Ok(OutboxRow {
        id: row.get(0)?,
        tenant: Tenant::new(row.get::<_, String>(1)?),
        event: EventId::new(row.get(2)?),
        execution: row.get::<_, Option<i64>>(3)?.map(ExecutionId::new),
        subject: row.get(4)?,
        payload: row.get(5)?,
        codec: row.get(6)?,
        attempts: row.get(7)?,
        error: row.get(8)?,
    })
}
