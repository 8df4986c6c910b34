//! Writes events to the table `outbox`.

use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, Tenant, Timestamp};
use noetl_store::outbox::{CODEC, Envelope, subject};
use rusqlite::{CachedStatement, Connection, params};

use crate::column::unreadable;
use crate::encoded_append::EncodedAppend;

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
        let mut previous = item.after.map(EventId::new);
        for row in &item.outgoing {
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
}
