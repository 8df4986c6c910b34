//! Rows of the audit of secrets.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, ExecutionId, Tenant};
use noetl_store::{AuditFilter, SecretAudit, SecretUse, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{At, interval};

#[async_trait]
impl SecretAudit for PostgresStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/secret_audit_insert.sql");
        // Texts that the database cannot hold are changed rather than that the use goes unseen.
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(used.id.get())
                .bind(At::within(used.at))
                .bind(plain(&used.credential))
                .bind(plain(&used.operation))
                .bind(plain(&used.outcome))
                .bind(used.worker.as_deref().map(plain))
                .bind(used.execution.map(ExecutionId::get))
                .bind(used.parent.map(ExecutionId::get))
                .bind(used.server_region.as_deref().map(plain))
                .bind(used.broker_region.as_deref().map(plain))
                .bind(used.key_version.as_deref().map(plain))
                .bind(used.notes.as_deref().map(plain))
        };
        Ok(self.touch("record the use of a secret", make).await? > 0)
    }

    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        let sql = include_str!("../queries/secret_audit_list.sql");
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(filter.credential.as_deref())
                .bind(filter.execution.map(ExecutionId::get))
                .bind(filter.from.map(At::within))
                .bind(filter.to.map(At::within))
                .bind(rows(filter.limit))
        };
        self.list("list uses of secrets", make, used).await
    }

    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/secret_audit_purge.sql");
        let make = || sqlx::query(sql).bind(interval(age)).bind(rows(limit));
        self.touch("purge uses of secrets", make).await
    }
}

fn used(row: &PgRow) -> Result<SecretUse, sqlx::Error> {
    Ok(SecretUse {
        id: AuditId::new(row.try_get(0)?),
        at: row.try_get::<At, _>(1)?.0,
        credential: row.try_get(2)?,
        operation: row.try_get(3)?,
        outcome: row.try_get(4)?,
        worker: row.try_get(5)?,
        execution: row.try_get::<Option<i64>, _>(6)?.map(ExecutionId::new),
        parent: row.try_get::<Option<i64>, _>(7)?.map(ExecutionId::new),
        server_region: row.try_get(8)?,
        broker_region: row.try_get(9)?,
        key_version: row.try_get(10)?,
        notes: row.try_get(11)?,
    })
}
