//! Implements [`OutboxStore`] on the table `outbox`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{EventId, ExecutionId, Tenant};
use noetl_store::outbox::cut;
use noetl_store::{OutboxRow, OutboxStore, StoreError};
use rusqlite::Row;

use crate::SqliteStore;
use crate::column::count;
use crate::encoded_append::rows;

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
