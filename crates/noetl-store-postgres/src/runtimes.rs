//! Implements [`RuntimeStore`] on the table `runtime`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{RuntimeId, Tenant};
use noetl_store::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::{PgTimestamptz, interval, json, json_text, parsed};
use crate::error::no_row;

#[async_trait]
impl RuntimeStore for PostgresStore {
    async fn register_runtime(
        &self,
        tenant: &Tenant,
        new: NewRuntime,
    ) -> Result<RuntimeRow, StoreError> {
        let action = "register a runtime";
        let sql = include_str!("../queries/runtime_register.sql");
        let make = || {
            sqlx::query(sql)
                .bind(new.id.get())
                .bind(tenant.as_str())
                .bind(new.kind.as_str())
                .bind(&new.name)
                .bind(new.uri.as_deref())
                .bind(&new.status)
                .bind(json_text(new.labels.as_ref()))
                .bind(json_text(new.capabilities.as_ref()))
                .bind(new.capacity)
                .bind(json_text(new.runtime.as_ref()))
        };
        let registered = self.change(action, make, runtime).await?;
        registered.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn heartbeat(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<Option<Duration>, StoreError> {
        let sql = include_str!("../queries/runtime_heartbeat.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(kind.as_str()).bind(name);
        let since = self.change("note a heartbeat", make, |row| row.try_get::<i64, _>(0));
        let since = since.await?.into_iter().next();
        Ok(since.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    async fn runtimes(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError> {
        let sql = include_str!("../queries/runtime_list.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str());
        let mut found = self.list("list runtimes", make, runtime).await?;
        found.retain(|row| filter.takes(&row.said));
        Ok(found)
    }

    async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<bool, StoreError> {
        let sql = "delete from noetl.runtime where tenant_id = $1 and kind = $2 and name = $3";
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(kind.as_str()).bind(name);
        Ok(self.touch("deregister a runtime", make).await? == 1)
    }

    async fn purge_stale(&self, older_than: Duration) -> Result<usize, StoreError> {
        let sql =
            "delete from noetl.runtime where kind = 'worker_pool' and heartbeat <= now() - $1";
        self.touch("purge runtimes", || sqlx::query(sql).bind(interval(older_than))).await
    }
}

fn runtime(row: &PgRow) -> Result<RuntimeRow, sqlx::Error> {
    Ok(RuntimeRow {
        said: NewRuntime {
            id: RuntimeId::new(row.try_get(0)?),
            kind: parsed(row, 1, RuntimeKind::from_text)?,
            name: row.try_get(2)?,
            uri: row.try_get(3)?,
            status: row.try_get(4)?,
            labels: json(row, 5)?,
            capabilities: json(row, 6)?,
            capacity: row.try_get(7)?,
            runtime: json(row, 8)?,
        },
        heartbeat: row.try_get::<PgTimestamptz, _>(9)?.0,
        created_at: row.try_get::<PgTimestamptz, _>(10)?.0,
        updated_at: row.try_get::<PgTimestamptz, _>(11)?.0,
    })
}
