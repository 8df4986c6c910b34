//! Implements [`SnapshotStore`] on the table `projection_snapshot`.

use async_trait::async_trait;
use noetl_model::{Tenant, Value};
use noetl_store::{Snapshot, SnapshotStore, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::json;

#[async_trait]
impl SnapshotStore for SqliteStore {
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError> {
        let (tenant, of, id) = (tenant.clone(), aggregate_type.to_owned(), aggregate_id.to_owned());
        self.read("read a snapshot", move |connection| {
            let sql = include_str!("../queries/projection_snapshot_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            let found = get.query_row((tenant.as_str(), &of, &id), snapshot).optional()?;
            Ok(found.and_then(|found| found.whole(&of, &id)))
        })
        .await
    }

    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError> {
        let (tenant, of, id) = (tenant.clone(), aggregate_type.to_owned(), aggregate_id.to_owned());
        self.write("save a snapshot", move |connection, now| {
            let sql = include_str!("../queries/projection_snapshot_save.sql");
            let saved = connection.prepare_cached(sql)?.execute(params![
                tenant.as_str(),
                of,
                id,
                snapshot.version,
                snapshot.body,
                snapshot.checksum,
                snapshot.meta.to_string(),
                now.as_micros(),
            ])?;
            Ok(saved == 1)
        })
        .await
    }

    async fn forget(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<bool, StoreError> {
        let (tenant, of, id) = (tenant.clone(), aggregate_type.to_owned(), aggregate_id.to_owned());
        self.write("forget a snapshot", move |connection, _| {
            let sql = include_str!("../queries/projection_snapshot_forget.sql");
            let mut forget = connection.prepare_cached(sql)?;
            Ok(forget.execute((tenant.as_str(), of, id))? == 1)
        })
        .await
    }
}

fn snapshot(row: &Row<'_>) -> rusqlite::Result<Snapshot> {
    Ok(Snapshot {
        version: row.get(0)?,
        body: row.get(1)?,
        checksum: row.get(2)?,
        meta: json(row, 3)?.unwrap_or(Value::Null),
    })
}
