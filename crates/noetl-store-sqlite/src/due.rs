//! Implements [`TimerStore`], the store of timers, on the table `due`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, TimerId, Timestamp, Value};
use noetl_store::{StoreError, TimerRow, TimerStore};
use rusqlite::Row;

use crate::SqliteStore;
use crate::append::DELETE_TIMER;
use crate::column::json;
use crate::encoded_append::rows;

#[async_trait]
impl TimerStore for SqliteStore {
    async fn claim_due(
        &self,
        limit: usize,
        lease_for: Duration,
    ) -> Result<Vec<TimerRow>, StoreError> {
        self.write("take what is due", move |connection, now| {
            let sql = include_str!("../queries/due_ready.sql");
            let mut find = connection.prepare_cached(sql)?;
            let ready = find.query_map((now.as_micros(), rows(limit)), |row| row.get(0))?;
            let ready = ready.collect::<rusqlite::Result<Vec<i64>>>()?;
            let mut take = connection.prepare_cached(include_str!("../queries/due_take.sql"))?;
            let until = now.plus(lease_for).as_micros();
            ready.into_iter().map(|id| take.query_row((id, until), due)).collect()
        })
        .await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read what is due next", |connection| {
            let sql = "select min(ready_at) from due";
            let next: Option<i64> =
                connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(next.map(Timestamp::from_micros))
        })
        .await
    }

    async fn delete_timers(&self, ids: &[TimerId]) -> Result<usize, StoreError> {
        let ids = ids.to_vec();
        self.write("remove what is delivered", move |connection, _| {
            let mut remove = connection.prepare_cached(DELETE_TIMER)?;
            ids.iter().try_fold(0, |count, id| Ok(count + remove.execute([id.get()])?))
        })
        .await
    }

    async fn reschedule(&self, id: TimerId, until: Timestamp) -> Result<bool, StoreError> {
        self.write("put off what is due", move |connection, _| {
            let sql = "update due set ready_at = ?2 where id = ?1";
            Ok(connection.prepare_cached(sql)?.execute((id.get(), until.as_micros()))? == 1)
        })
        .await
    }

    async fn with_pending_timer(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let executions: Vec<i64> = executions.iter().map(|id| id.get()).collect();
        let (kind, executions) = (kind.to_owned(), serde_json::json!(executions).to_string());
        self.read("look for what is due", move |connection| {
            let sql = include_str!("../queries/due_senders.sql");
            let mut list = connection.prepare_cached(sql)?;
            let senders = list.query_map((kind, executions), |row| row.get(0))?;
            senders.map(|sender| sender.map(ExecutionId::new)).collect()
        })
        .await
    }

    async fn timers_of(&self, execution: ExecutionId) -> Result<Vec<TimerRow>, StoreError> {
        self.read("list what is due", move |connection| {
            let sql = include_str!("../queries/due_of.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([execution.get()], due)?.collect()
        })
        .await
    }
}

fn due(row: &Row<'_>) -> rusqlite::Result<TimerRow> {
    Ok(TimerRow {
        id: TimerId::new(row.get(0)?),
        tenant: Tenant::new(row.get::<_, String>(1)?),
        execution: ExecutionId::new(row.get(2)?),
        kind: row.get(3)?,
        target: ExecutionId::new(row.get(4)?),
        at: Timestamp::from_micros(row.get(5)?),
        payload: json(row, 6)?.unwrap_or(Value::Null),
        attempts: row.get(7)?,
    })
}
