//! Implements [`ScheduleStore`] on the table `schedule`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp};
use noetl_store::{NewSchedule, ScheduleRow, ScheduleStore, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, json, json_text, optional_count};
use crate::error::no_row;

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn put_schedule(
        &self,
        tenant: &Tenant,
        new: NewSchedule,
    ) -> Result<ScheduleRow, StoreError> {
        let action = "put a schedule";
        let sql = include_str!("../queries/schedule_put.sql");
        let make = || {
            sqlx::query(sql)
                .bind(new.id.get())
                .bind(tenant.as_str())
                .bind(&new.path)
                .bind(new.version.map(i64::from))
                .bind(new.cron.as_deref())
                .bind(new.interval_seconds.map(i64::from))
                .bind(new.is_enabled)
                .bind(new.timezone.as_deref())
                .bind(new.next_run_at.map(PgTimestamptz::clamped))
                .bind(json_text(new.payload.as_ref()))
                .bind(json_text(new.meta.as_ref()))
        };
        let put = self.change(action, make, schedule).await?;
        put.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn schedule(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
    ) -> Result<Option<ScheduleRow>, StoreError> {
        let sql = include_str!("../queries/schedule_get.sql");
        let make = || sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
        self.one("read a schedule", make, schedule).await
    }

    async fn schedules(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, StoreError> {
        let sql = include_str!("../queries/schedule_list.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str());
        self.list("list schedules", make, schedule).await
    }

    async fn ready_schedules(&self, limit: usize) -> Result<Vec<ScheduleRow>, StoreError> {
        let sql = include_str!("../queries/schedule_ready.sql");
        let make = || sqlx::query(sql).bind(rows(limit));
        self.list("list schedules that are due", make, schedule).await
    }

    async fn next_schedule(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(next_run_at)::timestamptz from noetl.schedule where enabled";
        let next: Option<Option<PgTimestamptz>> = self
            .one("read when a schedule is due next", || sqlx::query(sql), |row| row.try_get(0))
            .await?;
        Ok(next.flatten().map(|at| at.0))
    }

    async fn fix_run(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Result<Option<ExecutionId>, StoreError> {
        let sql = include_str!("../queries/schedule_fix_run.sql");
        let make = || {
            let query = sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
            query.bind(PgTimestamptz::clamped(due)).bind(execution.get())
        };
        let fixed = self.change("fix a scheduled run", make, |row| row.try_get(0)).await?;
        Ok(fixed.into_iter().next().map(ExecutionId::new))
    }

    async fn move_on(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/schedule_move_on.sql");
        let make = || {
            sqlx::query(sql)
                .bind(id.get())
                .bind(tenant.as_str())
                .bind(PgTimestamptz::clamped(due))
                .bind(next.map(PgTimestamptz::clamped))
                .bind(status)
        };
        Ok(self.touch("move a schedule on", make).await? == 1)
    }

    async fn remove_schedule(&self, tenant: &Tenant, id: ScheduleId) -> Result<bool, StoreError> {
        let sql = "delete from noetl.schedule where schedule_id = $1 and tenant_id = $2";
        let make = || sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
        Ok(self.touch("remove a schedule", make).await? == 1)
    }
}

fn schedule(row: &PgRow) -> Result<ScheduleRow, sqlx::Error> {
    let time = |column: usize| -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(row.try_get::<Option<PgTimestamptz>, _>(column)?.map(|at| at.0))
    };
    Ok(ScheduleRow {
        schedule: NewSchedule {
            id: ScheduleId::new(row.try_get(0)?),
            path: row.try_get(2)?,
            version: optional_count(row, 3)?,
            cron: row.try_get(4)?,
            interval_seconds: optional_count(row, 5)?,
            is_enabled: row.try_get(6)?,
            timezone: row.try_get(7)?,
            next_run_at: time(8)?,
            payload: json(row, 12)?,
            meta: json(row, 13)?,
        },
        tenant: Tenant::new(row.try_get::<&str, _>(1)?),
        run: row.try_get::<Option<i64>, _>(9)?.map(ExecutionId::new),
        last_run_at: time(10)?,
        last_status: row.try_get(11)?,
        created_at: row.try_get::<PgTimestamptz, _>(14)?.0,
        updated_at: row.try_get::<PgTimestamptz, _>(15)?.0,
    })
}
