//! Implements [`SnapshotStore`] on the table `projection_snapshot`.

use async_trait::async_trait;
use noetl_model::{Tenant, Value};
use noetl_store::{Snapshot, SnapshotStore, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::json;

#[async_trait]
impl SnapshotStore for PostgresStore {
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError> {
        let sql = include_str!("../queries/projection_snapshot_get.sql");
        let make =
            || sqlx::query(sql).bind(tenant.as_str()).bind(aggregate_type).bind(aggregate_id);
        let found = self.one("read a snapshot", make, snapshot).await?;
        Ok(found.and_then(|found| found.whole(aggregate_type, aggregate_id)))
    }

    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/projection_snapshot_save.sql");
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(aggregate_type)
                .bind(aggregate_id)
                .bind(snapshot.version)
                .bind(&snapshot.body)
                .bind(&snapshot.checksum)
                .bind(snapshot.meta.to_string())
        };
        Ok(self.touch("save a snapshot", make).await? == 1)
    }

    async fn forget(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/projection_snapshot_forget.sql");
        let make =
            || sqlx::query(sql).bind(tenant.as_str()).bind(aggregate_type).bind(aggregate_id);
        Ok(self.touch("forget a snapshot", make).await? == 1)
    }
}

fn snapshot(row: &PgRow) -> Result<Snapshot, sqlx::Error> {
    Ok(Snapshot {
        version: row.try_get(0)?,
        body: row.try_get(1)?,
        checksum: row.try_get(2)?,
        meta: json(row, 3)?.unwrap_or(Value::Null),
    })
}
