//! Implements [`OutboxStore`] on the table `outbox`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{EventId, ExecutionId, Tenant};
use noetl_store::outbox::cut;
use noetl_store::{OutboxRow, OutboxStore, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{interval, number, small};

#[async_trait]
impl OutboxStore for PostgresStore {
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let sql = include_str!("../queries/outbox_claim.sql");
        let lease = self.outbox().lease;
        let make = || sqlx::query(sql).bind(interval(lease)).bind(rows(limit)).bind(rows(bytes));
        self.in_order().change("claim rows of the outbox", make, outgoing).await
    }

    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/outbox_mark_published.sql");
        self.by_key().touch("mark rows of the outbox", || sqlx::query(sql).bind(ids)).await
    }

    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/outbox_mark_failed.sql");
        let error = plain(cut(error));
        let make = || sqlx::query(sql).bind(id).bind(interval(delay)).bind(&*error);
        Ok(self.touch("mark a row of the outbox", make).await? == 1)
    }

    async fn pending(&self) -> Result<u64, StoreError> {
        let sql = include_str!("../queries/outbox_pending.sql");
        let lease = self.outbox().lease;
        let make = || sqlx::query(sql).bind(interval(lease));
        let count =
            self.by_key().one("count rows of the outbox", make, |row| number(row, 0)).await?;
        Ok(count.unwrap_or_default())
    }

    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError> {
        let sql = "delete from noetl.outbox \
                   where status = 'PUBLISHED' and published_at <= now() - $1";
        self.touch("purge the outbox", || sqlx::query(sql).bind(interval(older_than))).await
    }
}

fn outgoing(row: &PgRow) -> Result<OutboxRow, sqlx::Error> {
    Ok(OutboxRow {
        id: row.try_get(0)?,
        tenant: Tenant::new(row.try_get::<&str, _>(1)?),
        event: EventId::new(row.try_get(2)?),
        execution: row.try_get::<Option<i64>, _>(3)?.map(ExecutionId::new),
        subject: row.try_get(4)?,
        payload: row.try_get(5)?,
        codec: row.try_get(6)?,
        attempts: small(row, 7)?,
        error: row.try_get(8)?,
    })
}
