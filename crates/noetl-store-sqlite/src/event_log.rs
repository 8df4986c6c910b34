//! Implements [`EventLog`]: appends and reads of event logs.

use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::{
    Append, Committed, EventLog, LockedLog, ReadBound, StoreError, UnsharedLog, first_after,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::append_log::EventCursor;
use crate::column::unreadable;
use crate::decoded_event::event;
use crate::encoded_append::{EncodedAppend, rows, stored_seq};
use crate::{event_pages, event_search};

#[async_trait]
impl EventLog for SqliteStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let has_outbox = self.outbox().is_on;
        let encode = |append| EncodedAppend::encode(append, has_outbox);
        let items = batch.into_iter().map(encode).collect::<Result<Vec<_>, _>>()?;
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
            read_events(connection, execution, after, limit)
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
            event_pages::rows_by_id(connection, execution, first, until, limit)
        })
        .await
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        self.read("look for late events", move |connection| {
            event_search::least_id_after(connection, execution, after)
        })
        .await
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        self.read("look for an event", move |connection| {
            event_search::find(connection, execution, event)
        })
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
                if event_search::find(connection, execution, event)?.is_some() {
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

/// Returns events after a sequence number: first those of earlier versions, which are the first of
/// their log, then those of appends.
fn read_events(
    connection: &Connection,
    execution: ExecutionId,
    after: Seq,
    limit: usize,
) -> rusqlite::Result<Vec<Event>> {
    let mut read = connection.prepare_cached(include_str!("../queries/row_read.sql"))?;
    let found = read.query_map((execution.get(), stored_seq(after), rows(limit)), event)?;
    let mut events = found.collect::<rusqlite::Result<Vec<_>>>()?;
    let next = Seq(events.last().map_or(after, |event| event.seq).0.saturating_add(1));
    let mut read = connection.prepare_cached(include_str!("../queries/append_read.sql"))?;
    let appends = read.query((execution.get(), stored_seq(next)))?;
    let mut cursor = EventCursor::new(execution, appends);
    while events.len() < limit
        && let Some(row) = cursor.next()?
    {
        if row.seq >= next {
            events.push(row.decode().map_err(|error| unreadable(0, error))?);
        }
    }
    Ok(events)
}
