//! Implements [`ResultStore`] on the table `result_store`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ResultId, Tenant, Value};
use noetl_store::{NewResult, ResultStore, ResultSummary, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, micros, size, value};
use crate::encoded_append::rows;

#[async_trait]
impl ResultStore for SqliteStore {
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let NewResult { summary, data } = new;
        let data = data.to_string();
        self.write("keep a result", move |connection, now| {
            let sql = include_str!("../queries/result_store_put.sql");
            let added = connection.prepare_cached(sql)?.execute(params![
                summary.id.get(),
                tenant.as_str(),
                summary.execution.get(),
                summary.name,
                summary.scope,
                summary.source_step,
                data,
                size(summary.bytes),
                summary.sha256,
                summary.media_type,
                now.as_micros(),
                micros(summary.expires_at),
            ])?;
            Ok(added > 0)
        })
        .await
    }

    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError> {
        let tenant = tenant.clone();
        let name = name.to_owned();
        let clock = self.clock();
        self.read("read a result", move |connection| {
            let sql = include_str!("../queries/result_store_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            let key = (id.get(), tenant.as_str(), execution.get(), name, clock.now().as_micros());
            get.query_row(key, |row| value(row, 0)).optional()
        })
        .await
    }

    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError> {
        let tenant = tenant.clone();
        let clock = self.clock();
        self.read("list results", move |connection| {
            let sql = include_str!("../queries/result_store_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            let range = (
                tenant.as_str(),
                execution.get(),
                after.get(),
                clock.now().as_micros(),
                rows(limit),
            );
            list.query_map(range, summary)?.collect()
        })
        .await
    }

    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let tenant = tenant.clone();
        self.write("remove results", move |connection, _| {
            let sql = include_str!("../queries/result_store_delete.sql");
            let mut delete = connection.prepare_cached(sql)?;
            delete.execute((tenant.as_str(), execution.get(), rows(limit)))
        })
        .await
    }

    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError> {
        self.write("purge results", move |connection, now| {
            let sql = include_str!("../queries/result_store_purge.sql");
            connection.prepare_cached(sql)?.execute((now.as_micros(), rows(limit)))
        })
        .await
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<ResultSummary> {
    Ok(ResultSummary {
        id: ResultId::new(row.get(0)?),
        execution: ExecutionId::new(row.get(1)?),
        name: row.get(2)?,
        scope: row.get(3)?,
        source_step: row.get(4)?,
        bytes: count(row, 5)?,
        sha256: row.get(6)?,
        media_type: row.get(7)?,
        expires_at: instant(row, 8)?,
    })
}
