//! Implements [`EventLog`]: appends, reads, and locks of event logs.

use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::{Append, Committed, EventLog, LockedLog, ReadBound, StoreError, first_after};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{bounded, rows, stored_seq};
use crate::error::store_error;
use crate::event_rows::{events, found_ids, found_seq, least_id, log_rows};
use crate::listen::CHANNEL;
use crate::lock::LockedExecution;
use crate::row_pages::IdRange;

#[async_trait]
impl EventLog for PostgresStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let items = batch
            .into_iter()
            .map(|append| self.how().encode(append))
            .collect::<Result<Vec<_>, _>>()?;
        self.writer().commit(items).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn receives_notifications(&self) -> bool {
        self.ears().hears()
    }

    async fn wait_for_released_work(&self) {
        self.ears().others_left_work().await;
    }

    async fn notify_released_work(&self) -> Result<(), StoreError> {
        let sql = include_str!("../queries/work_left_say.sql");
        let make = || sqlx::query(sql).bind(CHANNEL).bind(self.ears().work_left());
        self.touch("tell others that work is left", make).await.map(|_| ())
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        let transaction = self.begin("hold an execution").await?;
        Ok(Box::new(LockedExecution::take(transaction, execution, self.how().clone()).await?))
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let found = self.read_placed(execution, after, limit).await?;
        if !found.is_empty() || after != Seq::START || limit == 0 {
            return Ok(found);
        }
        // The log is empty, or it is the log of an adopted database that is read for the first time
        // and has no sequence numbers.
        let sql = "select noetl.place_imported_1($1) where exists \
                   (select from noetl.event_row where execution_id = $1 and seq is null)";
        let make = || sqlx::query(sql).bind(execution.get());
        let placed = self.change("place an adopted log", make, |row| row.try_get::<i64, _>(0));
        if placed.await?.is_empty() {
            return Ok(found);
        }
        self.read_placed(execution, after, limit).await
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let Some(first) = first_after(after) else { return Ok(Vec::new()) };
        let range = IdRange { execution, first, last: until.last_id(), until: until.last_time() };
        self.rows_by_id(range, limit).await
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        let sql = include_str!("../queries/event_least_since.sql");
        let make = || sqlx::query(sql).bind(execution.get()).bind(stored_seq(after));
        let decode = |row: &PgRow| least_id(row, execution, after);
        let least = self.in_order().one("look for late events", make, decode).await?;
        Ok(least.flatten())
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        let sql = include_str!("../queries/event_find.sql");
        let make = || sqlx::query(sql).bind(execution.get()).bind(event.get());
        let found = self.one("look for an event", make, |row| found_seq(row, execution, event));
        Ok(found.await?.flatten())
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        let sql = include_str!("../queries/event_find_many.sql");
        let ids: Vec<i64> = events.iter().map(|event| event.get()).collect();
        let make = || sqlx::query(sql).bind(execution.get()).bind(ids.clone()).bind(true);
        let found = self.list("look for events", make, |row| found_ids(row, execution)).await?;
        let found: HashSet<EventId> = found.into_iter().flatten().collect();
        Ok(events.iter().copied().filter(|event| found.contains(event)).collect())
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        let sql = "select nullif(max(newest_event_id), 0) from noetl.lane";
        let newest: Option<Option<i64>> =
            self.one("read the newest event id", || sqlx::query(sql), |row| row.try_get(0)).await?;
        Ok(newest.flatten().map(EventId::new))
    }
}

impl PostgresStore {
    async fn read_placed(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        const ACTION: &str = "read the event log";
        let sql = include_str!("../queries/event_read.sql");
        let (from, count) = (bounded(stored_seq(after)), bounded(rows(limit)));
        let make = || sqlx::query(sql).bind(execution.get()).bind(from).bind(count);
        let read = self.in_order().list(ACTION, make, log_rows).await?;
        events(read, after, limit).map_err(|error| store_error(ACTION, error))
    }
}
