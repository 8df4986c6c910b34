//! Implements [`EventLog`]: appends, reads, and locks of event logs.

use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{Append, Committed, EventLog, LockedLog, ReadBound, StoreError, first_after};
use sqlx::Row;

use crate::PostgresStore;
use crate::arrays::{rows, stored_seq};
use crate::column::{PgTimestamp, number};
use crate::event_rows::{event, event_row};
use crate::listen::CHANNEL;
use crate::lock::LockedExecution;

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
                   (select from noetl.event where execution_id = $1 and seq is null)";
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
        let sql = include_str!("../queries/event_rows.sql");
        let (last, time) = (until.last_id().get(), until.last_time().map(PgTimestamp::clamped));
        let make = || {
            let read = sqlx::query(sql).bind(execution.get()).bind(first.get()).bind(last);
            read.bind(time).bind(rows(limit)).bind(rows(PAGE_BYTES))
        };
        self.in_order().list("read rows of the event log", make, event_row).await
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        let sql = include_str!("../queries/event_least_since.sql");
        let make = || sqlx::query(sql).bind(execution.get()).bind(stored_seq(after));
        let least: Option<Option<i64>> =
            self.in_order().one("look for late events", make, |row| row.try_get(0)).await?;
        Ok(least.flatten().map(EventId::new))
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        let sql = include_str!("../queries/event_find.sql");
        self.one(
            "look for an event",
            || sqlx::query(sql).bind(execution.get()).bind(event.get()),
            |row| Ok(Seq(number(row, 0)?)),
        )
        .await
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        let sql = include_str!("../queries/event_find_many.sql");
        let ids: Vec<i64> = events.iter().map(|event| event.get()).collect();
        let found = self.list(
            "look for events",
            || sqlx::query(sql).bind(execution.get()).bind(ids.clone()),
            |row| Ok(EventId::new(row.try_get(0)?)),
        );
        Ok(found.await?.into_iter().collect())
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
        let sql = include_str!("../queries/event_read.sql");
        let make =
            || sqlx::query(sql).bind(execution.get()).bind(stored_seq(after)).bind(rows(limit));
        self.in_order().list("read the event log", make, event).await
    }
}
