//! Implements [`EventLog`]: appends and reads of event logs.

use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::{
    Append, Committed, EventLog, LockedLog, ReadBound, StoreError, UnsharedLog, first_after,
};

use crate::SqliteStore;
use crate::decoded_event::event;
use crate::encoded_append::{EncodedAppend, rows, stored_seq};
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
            let found = read.query_map((execution.get(), stored_seq(after), rows(limit)), event)?;
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
                find.query_row((execution.get(), stored_seq(after)), |row| row.get(0))?;
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
