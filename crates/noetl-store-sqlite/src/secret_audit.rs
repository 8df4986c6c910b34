//! Implements [`SecretAuditStore`], the audit records of secrets, which form a hash chain.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, ExecutionId, Tenant, Timestamp};
use noetl_store::{
    AuditChain, AuditFilter, AuditHead, AuditLink, Digest, SecretAuditStore, SecretUse, StoreError,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::column::count;
use crate::encoded_append::rows;

#[async_trait]
impl SecretAuditStore for SqliteStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.write("record the use of a secret", move |connection, _| {
            let (link, _) = head(connection)?.next(&tenant, &used);
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
                link.seq,
            ])?;
            if added > 0 {
                let (content, hash) = (link.content.as_bytes(), link.hash.as_bytes());
                let sql = include_str!("../queries/audit_link_insert.sql");
                let values = params![link.seq, link.at.as_micros(), content, hash];
                connection.prepare_cached(sql)?.execute(values)?;
                let sql = "update audit_head set seq = ?1, link_hash = ?2";
                connection.prepare_cached(sql)?.execute(params![link.seq, hash])?;
            }
            Ok(added > 0)
        })
        .await
    }

    async fn audit_chain(&self) -> Result<AuditChain, StoreError> {
        self.read("read the end of the audit", move |connection| {
            let sql = "select count(*) from secret_audit where chain_seq is null";
            let outside = connection.query_row(sql, [], |row| count(row, 0))?;
            Ok(AuditChain { head: head(connection)?, outside })
        })
        .await
    }

    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError> {
        self.read("read links of the audit", move |connection| {
            let sql = include_str!("../queries/audit_link_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((after, rows(limit)), link)?.collect()
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

fn head(connection: &Connection) -> rusqlite::Result<AuditHead> {
    let sql = "select seq, link_hash from audit_head";
    connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(AuditHead { seq: row.get(0)?, hash: Digest::from_bytes(row.get(1)?) })
    })
}

fn link(row: &Row<'_>) -> rusqlite::Result<AuditLink> {
    let tenant: Option<String> = row.get(12)?;
    Ok(AuditLink {
        seq: row.get(13)?,
        at: Timestamp::from_micros(row.get(14)?),
        content: Digest::from_bytes(row.get(15)?),
        hash: Digest::from_bytes(row.get(16)?),
        used: match tenant {
            Some(tenant) => Some((Tenant::new(tenant), used(row)?)),
            None => None,
        },
    })
}
