//! Implements [`EventLog`]: appends and reads of event logs.

use std::borrow::Cow;
use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Origin, Seq, Timestamp};
use noetl_store::{
    Append, Committed, EventLog, LockedLog, ReadBound, StoreError, UnsharedLog, first_after,
};
use rusqlite::Row;

use crate::SqliteStore;
use crate::column::{count, parsed, unreadable};
use crate::encoded_append::{EncodedAppend, place, rows};
use crate::places;

#[async_trait]
impl EventLog for SqliteStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let items = batch.into_iter().map(EncodedAppend::encode).collect::<Result<Vec<_>, _>>()?;
        self.writer().commit(items).await
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        Ok(Box::new(UnsharedLog::new(self, execution)))
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.read("read the event log", move |connection| {
            let sql = include_str!("../queries/event_read.sql");
            let mut read = connection.prepare_cached(sql)?;
            let found = read.query_map((execution.get(), place(after), rows(limit)), event)?;
            found.collect()
        })
        .await
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let Some(first) = first_after(after) else { return Ok(Vec::new()) };
        self.read("read rows of the event log", move |connection| {
            places::rows_by_id(connection, execution, first, until, limit)
        })
        .await
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        self.read("look for late events", move |connection| {
            let sql = include_str!("../queries/event_least_since.sql");
            let mut find = connection.prepare_cached(sql)?;
            let least: Option<i64> =
                find.query_row((execution.get(), place(after)), |row| row.get(0))?;
            Ok(least.map(EventId::new))
        })
        .await
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        self.read("look for an event", move |connection| places::find(connection, execution, event))
            .await
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        let events = events.to_vec();
        self.read("look for events", move |connection| {
            let mut found = HashSet::new();
            for event in events {
                if places::find(connection, execution, event)?.is_some() {
                    found.insert(event);
                }
            }
            Ok(found)
        })
        .await
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        self.read("read the newest event id", |connection| {
            let sql = "select max(newest_event_id) from log_head";
            let newest: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(newest.map(EventId::new))
        })
        .await
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    event_row(row)?.decode().map_err(|error| unreadable(0, error))
}

/// Decodes an event row, whose columns start at index 0.
pub(crate) fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        execution_id: ExecutionId::new(row.get(0)?),
        seq: Seq(count(row, 1)?),
        event_id: EventId::new(row.get(2)?),
        created_at: Timestamp::from_micros(row.get(3)?),
        origin: parsed(row, 4, Origin::from_text)?,
        event_type: row.get::<_, Option<String>>(5)?.map(Cow::Owned),
        node_name: row.get(6)?,
        node_type: row.get(7)?,
        status: row.get::<_, Option<String>>(8)?.map(Cow::Owned),
        command_id: row.get::<_, Option<i64>>(9)?.map(CommandId::new),
        parent_execution_id: row.get::<_, Option<i64>>(10)?.map(ExecutionId::new),
        worker_id: row.get(11)?,
        meta: row.get(12)?,
        error: row.get(13)?,
        context: row.get(14)?,
        result: row.get(15)?,
        duration: row.get(16)?,
        idempotency_key: row.get(17)?,
        more: row.get(18)?,
    })
}
