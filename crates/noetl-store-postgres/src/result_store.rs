//! Implements [`ResultStore`] on the table `result_store`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ResultId, Tenant, Value};
use noetl_store::{NewResult, ResultStore, ResultSummary, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, instant, number, size, value};

#[async_trait]
impl ResultStore for PostgresStore {
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError> {
        let NewResult { summary, data } = new;
        let data = data.to_string();
        let sql = include_str!("../queries/result_store_put.sql");
        let make = || {
            sqlx::query(sql)
                .bind(summary.id.get())
                .bind(tenant.as_str())
                .bind(summary.execution.get())
                .bind(&summary.name)
                .bind(&summary.scope)
                .bind(summary.source_step.as_deref())
                .bind(&data)
                .bind(size(summary.bytes))
                .bind(&summary.sha256)
                .bind(&summary.media_type)
                .bind(summary.expires_at.map(PgTimestamptz::clamped))
        };
        Ok(self.touch("keep a result", make).await? > 0)
    }

    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError> {
        let sql = include_str!("../queries/result_store_get.sql");
        let make = || {
            let query = sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
            query.bind(execution.get()).bind(name)
        };
        self.one("read a result", make, |row| value(row, 0)).await
    }

    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError> {
        let sql = include_str!("../queries/result_store_list.sql");
        let make = || {
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(execution.get());
            query.bind(after.get()).bind(rows(limit))
        };
        self.list("list results", make, summary).await
    }

    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/result_store_delete.sql");
        let make =
            || sqlx::query(sql).bind(tenant.as_str()).bind(execution.get()).bind(rows(limit));
        self.touch("remove results", make).await
    }

    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/result_store_purge.sql");
        self.touch("purge results", || sqlx::query(sql).bind(rows(limit))).await
    }
}

fn summary(row: &PgRow) -> Result<ResultSummary, sqlx::Error> {
    Ok(ResultSummary {
        id: ResultId::new(row.try_get(0)?),
        execution: ExecutionId::new(row.try_get(1)?),
        name: row.try_get(2)?,
        scope: row.try_get(3)?,
        source_step: row.try_get(4)?,
        bytes: number(row, 5)?,
        sha256: row.try_get(6)?,
        media_type: row.try_get(7)?,
        expires_at: instant(row, 8)?,
    })
}
