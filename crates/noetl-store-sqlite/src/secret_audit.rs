//! Rows of the audit of secrets.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, ExecutionId, Tenant, Timestamp};
use noetl_store::{AuditFilter, SecretAudit, SecretUse, StoreError};
use rusqlite::{Row, params};

use crate::SqliteStore;
use crate::item::rows;

#[async_trait]
impl SecretAudit for SqliteStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.write("record the use of a secret", move |connection, _| {
            let sql = include_str!("../queries/secret_audit_insert.sql");
            let added = connection.prepare_cached(sql)?.execute(params![
                tenant.as_str(),
                used.id.get(),
                used.at.as_micros(),
                used.credential,
                used.operation,
                used.outcome,
                used.worker,
                used.execution.map(ExecutionId::get),
                used.parent.map(ExecutionId::get),
                used.server_region,
                used.broker_region,
                used.key_version,
                used.notes,
            ])?;
            Ok(added > 0)
        })
        .await
    }

    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        let tenant = tenant.clone();
        let filter = filter.clone();
        self.read("list uses of secrets", move |connection| {
            let sql = include_str!("../queries/secret_audit_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            let values = params![
                tenant.as_str(),
                filter.credential,
                filter.execution.map(ExecutionId::get),
                filter.from.map_or(i64::MIN, Timestamp::as_micros),
                filter.to.map_or(i64::MAX, Timestamp::as_micros),
                rows(filter.limit),
            ];
            list.query_map(values, used)?.collect()
        })
        .await
    }

    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.write("purge uses of secrets", move |connection, now| {
            let until = now.minus(age).as_micros();
            let sql = include_str!("../queries/secret_audit_purge.sql");
            connection.prepare_cached(sql)?.execute((until, rows(limit)))
        })
        .await
    }
}

fn used(row: &Row<'_>) -> rusqlite::Result<SecretUse> {
    Ok(SecretUse {
        id: AuditId::new(row.get(0)?),
        at: Timestamp::from_micros(row.get(1)?),
        credential: row.get(2)?,
        operation: row.get(3)?,
        outcome: row.get(4)?,
        worker: row.get(5)?,
        execution: row.get::<_, Option<i64>>(6)?.map(ExecutionId::new),
        parent: row.get::<_, Option<i64>>(7)?.map(ExecutionId::new),
        server_region: row.get(8)?,
        broker_region: row.get(9)?,
        key_version: row.get(10)?,
        notes: row.get(11)?,
    })
}
