//! Implements [`TimerStore`], the store of timers, on the table `due`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, TimerId, Timestamp, Value};
use noetl_store::{StoreError, TimerRow, TimerStore};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{PgTimestamptz, interval, json, small};

#[async_trait]
impl TimerStore for PostgresStore {
    async fn claim_due(
        &self,
        limit: usize,
        lease_for: Duration,
    ) -> Result<Vec<TimerRow>, StoreError> {
        let sql = include_str!("../queries/due_take.sql");
        let make = || sqlx::query(sql).bind(rows(limit)).bind(interval(lease_for));
        self.reserved().change("take what is due", make, due).await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(ready_at) from noetl.due";
        let next: Option<Option<PgTimestamptz>> = self
            .reserved()
            .one("read what is due next", || sqlx::query(sql), |row| row.try_get(0))
            .await?;
        Ok(next.flatten().map(|at| at.0))
    }

    async fn delete_timers(&self, ids: &[TimerId]) -> Result<usize, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.get()).collect();
        let sql = "delete from noetl.due where id = any ($1)";
        self.reserved().touch("remove what is delivered", || sqlx::query(sql).bind(&ids)).await
    }

    async fn reschedule(&self, id: TimerId, until: Timestamp) -> Result<bool, StoreError> {
        let sql = "update noetl.due set ready_at = $2 where id = $1";
        let make = || sqlx::query(sql).bind(id.get()).bind(PgTimestamptz::clamped(until));
        Ok(self.reserved().touch("put off what is due", make).await? == 1)
    }

    async fn with_pending_timer(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let sql = "select distinct execution_id from noetl.due \
                   where execution_id = any ($2) and kind = $1 order by execution_id";
        let executions: Vec<i64> = executions.iter().map(|id| id.get()).collect();
        let make = || sqlx::query(sql).bind(plain(kind)).bind(&executions);
        self.reserved()
            .list("look for what is due", make, |row| Ok(ExecutionId::new(row.try_get(0)?)))
            .await
    }

    async fn timers_of(&self, execution: ExecutionId) -> Result<Vec<TimerRow>, StoreError> {
        let sql = include_str!("../queries/due_of.sql");
        self.reserved()
            .list("list what is due", || sqlx::query(sql).bind(execution.get()), due)
            .await
    }
}

fn due(row: &PgRow) -> Result<TimerRow, sqlx::Error> {
    Ok(TimerRow {
        id: TimerId::new(row.try_get(0)?),
        tenant: Tenant::new(row.try_get::<&str, _>(1)?),
        execution: ExecutionId::new(row.try_get(2)?),
        kind: row.try_get(3)?,
        target: ExecutionId::new(row.try_get(4)?),
        at: row.try_get::<PgTimestamptz, _>(5)?.0,
        payload: json(row, 6)?.unwrap_or(Value::Null),
        attempts: small(row, 7)?,
    })
}
