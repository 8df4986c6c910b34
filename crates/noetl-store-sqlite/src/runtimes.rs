//! Implements [`RuntimeStore`] on the table `runtime`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{RuntimeId, Tenant, Timestamp};
use noetl_store::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore, StoreError};
use rusqlite::{OptionalExtension as _, Row, params};

use crate::SqliteStore;
use crate::column::{json, json_text, parsed};

#[async_trait]
impl RuntimeStore for SqliteStore {
    async fn register_runtime(
        &self,
        tenant: &Tenant,
        new: NewRuntime,
    ) -> Result<RuntimeRow, StoreError> {
        let tenant = tenant.clone();
        self.write("register a runtime", move |connection, now| {
            let sql = include_str!("../queries/runtime_register.sql");
            connection.prepare_cached(sql)?.query_row(
                params![
                    new.id.get(),
                    tenant.as_str(),
                    new.kind.as_str(),
                    new.name,
                    new.uri,
                    new.status,
                    json_text(&new.labels),
                    json_text(&new.capabilities),
                    new.capacity,
                    json_text(&new.runtime),
                    now.as_micros(),
                ],
                runtime,
            )
        })
        .await
    }

    async fn heartbeat(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<Option<Duration>, StoreError> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.write("note a heartbeat", move |connection, now| {
            let (tenant, kind) = (tenant.as_str(), kind.as_str());
            let sql = include_str!("../queries/runtime_last_heartbeat.sql");
            let mut last = connection.prepare_cached(sql)?;
            let last = last.query_row((tenant, kind, &name), |row| row.get(0)).optional()?;
            let Some(last) = last.map(Timestamp::from_micros) else { return Ok(None) };
            let sql = include_str!("../queries/runtime_heartbeat.sql");
            let mut note = connection.prepare_cached(sql)?;
            note.execute((tenant, kind, &name, now.as_micros()))?;
            Ok(Some(now.since(last)))
        })
        .await
    }

    async fn runtimes(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError> {
        let (tenant, filter) = (tenant.clone(), filter.clone());
        self.read("list runtimes", move |connection| {
            let sql = include_str!("../queries/runtime_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            let found = list.query_map([tenant.as_str()], runtime)?;
            let mut found = found.collect::<rusqlite::Result<Vec<RuntimeRow>>>()?;
            found.retain(|row| filter.takes(&row.said));
            Ok(found)
        })
        .await
    }

    async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<bool, StoreError> {
        let (tenant, name) = (tenant.clone(), name.to_owned());
        self.write("deregister a runtime", move |connection, _| {
            let sql = "delete from runtime where tenant_id = ?1 and kind = ?2 and name = ?3";
            let mut delete = connection.prepare_cached(sql)?;
            Ok(delete.execute((tenant.as_str(), kind.as_str(), name))? == 1)
        })
        .await
    }

    async fn purge_stale(&self, older_than: Duration) -> Result<usize, StoreError> {
        self.write("purge runtimes", move |connection, now| {
            let sql = "delete from runtime where kind = 'worker_pool' and heartbeat <= ?1";
            connection.prepare_cached(sql)?.execute([now.minus(older_than).as_micros()])
        })
        .await
    }
}

fn runtime(row: &Row<'_>) -> rusqlite::Result<RuntimeRow> {
    Ok(RuntimeRow {
        said: NewRuntime {
            id: RuntimeId::new(row.get(0)?),
            kind: parsed(row, 1, RuntimeKind::from_text)?,
            name: row.get(2)?,
            uri: row.get(3)?,
            status: row.get(4)?,
            labels: json(row, 5)?,
            capabilities: json(row, 6)?,
            capacity: row.get(7)?,
            runtime: json(row, 8)?,
        },
        heartbeat: Timestamp::from_micros(row.get(9)?),
        created_at: Timestamp::from_micros(row.get(10)?),
        updated_at: Timestamp::from_micros(row.get(11)?),
    })
}
