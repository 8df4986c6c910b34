//! Implements [`ExecutionStore`] on the table `execution`.

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Seq, Tenant, Timestamp};
use noetl_store::{
    ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore, StartCounts, StoreError,
    TimeBuckets,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, parsed};
use crate::encoded_append::rows;

#[async_trait]
impl ExecutionStore for SqliteStore {
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        let tenant = tenant.clone();
        self.read("read an execution", move |connection| {
            let sql = include_str!("../queries/execution_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((id.get(), tenant.as_str()), execution).optional()
        })
        .await
    }

    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        self.read("read an execution's tenant", move |connection| {
            let sql = "select tenant_id from execution where id = ?1";
            let mut get = connection.prepare_cached(sql)?;
            let tenant = get.query_row([id.get()], |row| row.get::<_, String>(0)).optional()?;
            Ok(tenant.map(Tenant::new))
        })
        .await
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        let tenant = tenant.clone();
        let filter = filter.clone();
        self.read("list executions", move |connection| {
            let catalog = filter.catalog.map(|id| id.get());
            let (limit, offset) = (rows(filter.limit), rows(filter.offset));
            let before = filter.started_before.map(Timestamp::as_micros);
            let after = filter.started_after.map(Timestamp::as_micros);
            let (tenant, path, text) = (tenant.as_str(), filter.path, filter.text);
            let common = params![tenant, path, catalog, limit, offset, before, after, text];
            let status = filter.status.map(ExecutionStatus::as_str);
            let parent = filter.parent.map(ExecutionId::get);
            // Use three statements, so that each uses its own index.
            let (sql, rest) = match (parent, status) {
                (Some(_), _) => (
                    include_str!("../queries/execution_list_by_parent.sql"),
                    params![parent, status],
                ),
                (None, Some(_)) => {
                    (include_str!("../queries/execution_list_by_status.sql"), params![status])
                }
                (None, None) => (include_str!("../queries/execution_list.sql"), params![]),
            };
            let mut list = connection.prepare_cached(sql)?;
            let all = [common, rest].concat();
            list.query_map(all.as_slice(), execution)?.collect()
        })
        .await
    }

    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError> {
        let tenant = tenant.clone();
        self.read("count executions", move |connection| {
            let sql = "select status, count(*) from execution indexed by execution_status \
                       where tenant_id = ?1 group by status order by status";
            let mut counts = connection.prepare_cached(sql)?;
            let counts = counts.query_map([tenant.as_str()], |row| {
                Ok((parsed(row, 0, ExecutionStatus::from_text)?, count(row, 1)?))
            })?;
            counts.collect()
        })
        .await
    }

    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError> {
        let tenant = tenant.clone();
        self.read("count executions by start", move |connection| {
            let sql = include_str!("../queries/execution_starts.sql");
            let mut counts = connection.prepare_cached(sql)?;
            let (from, end) = (stretch.from.as_micros(), stretch.end().as_micros());
            let asked = (tenant.as_str(), from, stretch.width_micros.max(1), end);
            let counts = counts.query_map(asked, |row| {
                let status = parsed(row, 1, ExecutionStatus::from_text)?;
                Ok(StartCounts { place: row.get(0)?, status, count: count(row, 2)? })
            })?;
            counts.collect()
        })
        .await
    }

    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError> {
        self.read("list all executions", move |connection| {
            let sql = include_str!("../queries/execution_every.sql");
            let mut list = connection.prepare_cached(sql)?;
            let row = |row: &Row<'_>| Ok((Tenant::new(row.get::<_, String>(16)?), execution(row)?));
            list.query_map((after.get(), rows(limit)), row)?.collect()
        })
        .await
    }

    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        self.read("list unfinished executions", move |connection| {
            let sql = include_str!("../queries/execution_unfinished.sql");
            let mut list = connection.prepare_cached(sql)?;
            let found = list.query_map((after.get(), rows(limit)), |row| row.get(0))?;
            found.map(|id| id.map(ExecutionId::new)).collect()
        })
        .await
    }
}

pub(crate) fn execution(row: &Row<'_>) -> rusqlite::Result<ExecutionRow> {
    Ok(ExecutionRow {
        id: ExecutionId::new(row.get(0)?),
        catalog: CatalogId::new(row.get(1)?),
        path: row.get(2)?,
        playbook_version: row.get(3)?,
        parent: row.get::<_, Option<i64>>(4)?.map(ExecutionId::new),
        status: parsed(row, 5, ExecutionStatus::from_text)?,
        version: Seq(count(row, 6)?),
        started_at: Timestamp::from_micros(row.get(7)?),
        updated_at: Timestamp::from_micros(row.get(8)?),
        ended_at: instant(row, 9)?,
        error: row.get(10)?,
        steps_entered: row.get(11)?,
        steps_completed: row.get(12)?,
        steps_failed: row.get(13)?,
        steps_running: row.get(14)?,
        current_step: row.get(15)?,
    })
}
