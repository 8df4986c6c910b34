//! Implements [`ExecutionStore`] on the table `execution`.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Seq, Tenant};
use noetl_store::{
    ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore, StartCounts, StoreError,
    TimeBuckets,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, count, number, parsed, small};

#[async_trait]
impl ExecutionStore for PostgresStore {
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let sql = include_str!("../queries/execution_get.sql");
        self.one(
            "read an execution",
            || sqlx::query(sql).bind(id.get()).bind(tenant.as_str()),
            execution,
        )
        .await
    }

    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        let sql = "select tenant_id from noetl.execution where execution_id = $1";
        self.one(
            "read an execution's tenant",
            || sqlx::query(sql).bind(id.get()),
            |row| Ok(Tenant::new(row.try_get::<&str, _>(0)?)),
        )
        .await
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        // Use three statements, so that each is planned for its own index.
        let sql = match (filter.parent, filter.status) {
            (Some(_), _) => include_str!("../queries/execution_list_by_parent.sql"),
            (None, Some(_)) => include_str!("../queries/execution_list_by_status.sql"),
            (None, None) => include_str!("../queries/execution_list.sql"),
        };
        let path = filter.path.as_ref().map(|path| path.to_lowercase());
        self.list(
            "list executions",
            || {
                let list = sqlx::query(sql)
                    .bind(tenant.as_str())
                    .bind(path.clone())
                    .bind(filter.catalog.map(CatalogId::get))
                    .bind(rows(filter.limit))
                    .bind(rows(filter.offset))
                    .bind(filter.started_before.map(PgTimestamptz))
                    .bind(filter.started_after.map(PgTimestamptz))
                    .bind(filter.text.as_ref().map(|text| text.to_lowercase()))
                    .bind(filter.text.clone());
                let status = filter.status.map(ExecutionStatus::as_str);
                match (filter.parent, status) {
                    (Some(parent), status) => list.bind(parent.get()).bind(status),
                    (None, Some(status)) => list.bind(status),
                    (None, None) => list,
                }
            },
            execution,
        )
        .await
    }

    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError> {
        let sql = "select status, count(*) from noetl.execution where tenant_id = $1 \
                   group by status order by status collate \"C\"";
        self.list(
            "count executions",
            || sqlx::query(sql).bind(tenant.as_str()),
            |row| Ok((parsed(row, 0, ExecutionStatus::from_text)?, number(row, 1)?)),
        )
        .await
    }

    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError> {
        let sql = include_str!("../queries/execution_starts.sql");
        self.list(
            "count executions by start",
            || {
                sqlx::query(sql)
                    .bind(tenant.as_str())
                    .bind(PgTimestamptz(stretch.from))
                    .bind(stretch.width_micros.max(1))
                    .bind(PgTimestamptz(stretch.end()))
            },
            |row| {
                let status = parsed(row, 1, ExecutionStatus::from_text)?;
                let place = u32::try_from(number(row, 0)?).unwrap_or(u32::MAX);
                Ok(StartCounts { place, status, count: number(row, 2)? })
            },
        )
        .await
    }

    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError> {
        let sql = include_str!("../queries/execution_every.sql");
        self.list(
            "list all executions",
            || sqlx::query(sql).bind(after.get()).bind(rows(limit)),
            |row| Ok((Tenant::new(row.try_get::<&str, _>(16)?), execution(row)?)),
        )
        .await
    }

    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let sql = "select execution_id from noetl.execution \
                   where end_time is null and origin = 'own' and execution_id > $1 \
                   order by execution_id limit $2";
        self.list(
            "list unfinished executions",
            || sqlx::query(sql).bind(after.get()).bind(rows(limit)),
            |row| Ok(ExecutionId::new(row.try_get(0)?)),
        )
        .await
    }
}

pub(crate) fn execution(row: &PgRow) -> Result<ExecutionRow, sqlx::Error> {
    Ok(ExecutionRow {
        id: ExecutionId::new(row.try_get(0)?),
        catalog: CatalogId::new(row.try_get(1)?),
        path: Arc::from(row.try_get::<&str, _>(2)?),
        playbook_version: small(row, 3)?,
        parent: row.try_get::<Option<i64>, _>(4)?.map(ExecutionId::new),
        status: parsed(row, 5, ExecutionStatus::from_text)?,
        version: Seq(number(row, 6)?),
        started_at: row.try_get::<PgTimestamptz, _>(7)?.0,
        updated_at: row.try_get::<PgTimestamptz, _>(8)?.0,
        ended_at: row.try_get::<Option<PgTimestamptz>, _>(9)?.map(|at| at.0),
        error: row.try_get(10)?,
        steps_entered: count(row, 11)?,
        steps_completed: count(row, 12)?,
        steps_failed: count(row, 13)?,
        steps_running: count(row, 14)?,
        current_step: row.try_get::<Option<&str>, _>(15)?.map(Arc::from),
    })
}
