//! Implements [`SecretAuditStore`], the audit records of secrets, which form a hash chain.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, ExecutionId, Tenant};
use noetl_store::{
    AuditChain, AuditFilter, AuditHead, AuditLink, Digest, SecretAuditStore, SecretUse, StoreError,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{PgTimestamptz, interval};
use crate::error::{StatementOutcome, fate, write_error};

const RECORD: &str = "record the use of a secret";

/// Maximum number of attempts to record a use that conflicts with another one at the end of the
/// chain.
const TRIES_MAX: usize = 5;

#[async_trait]
impl SecretAuditStore for PostgresStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        let used = holdable(used);
        let mut tries = 1;
        loop {
            match self.link_use(tenant, &used).await {
                Ok(added) => return Ok(added),
                Err(error) if tries < TRIES_MAX && fate(&error) == StatementOutcome::Retry => {
                    tries += 1
                }
                Err(error) => return Err(write_error(RECORD, error)),
            }
        }
    }

    async fn audit_chain(&self) -> Result<AuditChain, StoreError> {
        let sql = "select seq, link_hash, (select count(*) from noetl.secret_audit \
                   where chain_seq is null) from noetl.audit_head";
        let chain = |row: &PgRow| {
            let outside: i64 = row.try_get(2)?;
            Ok(AuditChain { head: head(row)?, outside: outside.unsigned_abs() })
        };
        let read = self.one("read the end of the audit", || sqlx::query(sql), chain).await?;
        Ok(read.unwrap_or(AuditChain { head: AuditHead::START, outside: 0 }))
    }

    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError> {
        let sql = include_str!("../queries/audit_link_list.sql");
        let make = || sqlx::query(sql).bind(after).bind(rows(limit));
        self.list("read links of the audit", make, link).await
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
                .bind(filter.from.map(PgTimestamptz::clamped))
                .bind(filter.to.map(PgTimestamptz::clamped))
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
        at: row.try_get::<PgTimestamptz, _>(1)?.0,
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

impl PostgresStore {
    /// Appends a use to the chain, whose head is locked until the transaction ends.
    async fn link_use(&self, tenant: &Tenant, used: &SecretUse) -> Result<bool, sqlx::Error> {
        let mut transaction = self.pool().begin().await?;
        let sql = "select seq, link_hash from noetl.audit_head for update";
        let row = sqlx::query(sql).persistent(false).fetch_one(&mut *transaction).await?;
        let (link, _) = head(&row)?.next(tenant, used);
        let added = sqlx::query(include_str!("../queries/secret_audit_insert.sql"))
            .persistent(false)
            .bind(tenant.as_str())
            .bind(used.id.get())
            .bind(PgTimestamptz(used.at))
            .bind(&used.credential)
            .bind(&used.operation)
            .bind(&used.outcome)
            .bind(&used.worker)
            .bind(used.execution.map(ExecutionId::get))
            .bind(used.parent.map(ExecutionId::get))
            .bind(&used.server_region)
            .bind(&used.broker_region)
            .bind(&used.key_version)
            .bind(&used.notes)
            .bind(link.seq)
            .bind(&link.content.as_bytes()[..])
            .bind(&link.hash.as_bytes()[..])
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(added.rows_affected() > 0)
    }
}

/// Replaces texts and times that the database can't store: an altered record is better than none.
fn holdable(used: SecretUse) -> SecretUse {
    let text = |text: String| plain(&text).into_owned();
    SecretUse {
        id: used.id,
        at: PgTimestamptz::clamped(used.at).0,
        credential: text(used.credential),
        operation: text(used.operation),
        outcome: text(used.outcome),
        worker: used.worker.map(text),
        execution: used.execution,
        parent: used.parent,
        server_region: used.server_region.map(text),
        broker_region: used.broker_region.map(text),
        key_version: used.key_version.map(text),
        notes: used.notes.map(text),
    }
}

fn head(row: &PgRow) -> Result<AuditHead, sqlx::Error> {
    Ok(AuditHead { seq: row.try_get(0)?, hash: digest(row, 1)? })
}

fn link(row: &PgRow) -> Result<AuditLink, sqlx::Error> {
    let tenant: Option<String> = row.try_get(12)?;
    Ok(AuditLink {
        seq: row.try_get(13)?,
        at: row.try_get::<PgTimestamptz, _>(14)?.0,
        content: digest(row, 15)?,
        hash: digest(row, 16)?,
        used: match tenant {
            Some(tenant) => Some((Tenant::new(tenant), used(row)?)),
            None => None,
        },
    })
}

fn digest(row: &PgRow, column: usize) -> Result<Digest, sqlx::Error> {
    let bytes: Vec<u8> = row.try_get(column)?;
    let bytes = bytes.try_into().map_err(|_| sqlx::Error::ColumnNotFound("a digest".to_owned()))?;
    Ok(Digest::from_bytes(bytes))
}
