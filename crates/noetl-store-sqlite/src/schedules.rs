//! Implements [`ScheduleStore`] on the table `schedule`.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp};
use noetl_store::{NewSchedule, ScheduleRow, ScheduleStore, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{instant, json, json_text, micros};
use crate::encoded_append::rows;

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn put_schedule(
        &self,
        tenant: &Tenant,
        new: NewSchedule,
    ) -> Result<ScheduleRow, StoreError> {
        let tenant = tenant.clone();
        // If another tenant uses the ID, the statement returns no row, which the driver reports as
        // an error.
        self.write("put a schedule", move |connection, now| {
            let sql = include_str!("../queries/schedule_put.sql");
            connection.prepare_cached(sql)?.query_row(
                params![
                    new.id.get(),
                    tenant.as_str(),
                    new.path,
                    new.version,
                    new.cron,
                    new.interval_seconds,
                    new.is_enabled,
                    new.timezone,
                    micros(new.next_run_at),
                    json_text(&new.payload),
                    json_text(&new.meta),
                    now.as_micros(),
                ],
                schedule,
            )
        })
        .await
    }

    async fn schedule(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
    ) -> Result<Option<ScheduleRow>, StoreError> {
        let tenant = tenant.clone();
        self.read("read a schedule", move |connection| {
            let sql = include_str!("../queries/schedule_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((id.get(), tenant.as_str()), schedule).optional()
        })
        .await
    }

    async fn schedules(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, StoreError> {
        let tenant = tenant.clone();
        self.read("list schedules", move |connection| {
            let sql = include_str!("../queries/schedule_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([tenant.as_str()], schedule)?.collect()
        })
        .await
    }

    async fn ready_schedules(&self, limit: usize) -> Result<Vec<ScheduleRow>, StoreError> {
        let clock = self.clock();
        self.read("list schedules that are due", move |connection| {
            let sql = include_str!("../queries/schedule_ready.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((clock.now().as_micros(), rows(limit)), schedule)?.collect()
        })
        .await
    }

    async fn next_schedule(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read when a schedule is due next", |connection| {
            let sql = "select min(next_run_at) from schedule indexed by schedule_next \
                       where enabled = 1 and next_run_at is not null";
            let next: Option<i64> =
                connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(next.map(Timestamp::from_micros))
        })
        .await
    }

    async fn fix_run(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Result<Option<ExecutionId>, StoreError> {
        let tenant = tenant.clone();
        self.write("fix a scheduled run", move |connection, now| {
            let sql = include_str!("../queries/schedule_fix_run.sql");
            let mut fix = connection.prepare_cached(sql)?;
            let fixed = fix.query_row(
                (id.get(), tenant.as_str(), due.as_micros(), execution.get(), now.as_micros()),
                |row| row.get(0),
            );
            Ok(fixed.optional()?.map(ExecutionId::new))
        })
        .await
    }

    async fn move_on(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<bool, StoreError> {
        let (tenant, status) = (tenant.clone(), status.to_owned());
        self.write("move a schedule on", move |connection, now| {
            let sql = include_str!("../queries/schedule_move_on.sql");
            let moved = connection.prepare_cached(sql)?.execute(params![
                id.get(),
                tenant.as_str(),
                due.as_micros(),
                micros(next),
                status,
                now.as_micros(),
            ])?;
            Ok(moved == 1)
        })
        .await
    }

    async fn remove_schedule(&self, tenant: &Tenant, id: ScheduleId) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.write("remove a schedule", move |connection, _| {
            let sql = "delete from schedule where schedule_id = ?1 and tenant_id = ?2";
            Ok(connection.prepare_cached(sql)?.execute((id.get(), tenant.as_str()))? == 1)
        })
        .await
    }
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<ScheduleRow> {
    Ok(ScheduleRow {
        schedule: NewSchedule {
            id: ScheduleId::new(row.get(0)?),
            path: row.get(2)?,
            version: row.get(3)?,
            cron: row.get(4)?,
            interval_seconds: row.get(5)?,
            is_enabled: row.get(6)?,
            timezone: row.get(7)?,
            next_run_at: instant(row, 8)?,
            payload: json(row, 12)?,
            meta: json(row, 13)?,
        },
        tenant: Tenant::new(row.get::<_, String>(1)?),
        run: row.get::<_, Option<i64>>(9)?.map(ExecutionId::new),
        last_run_at: instant(row, 10)?,
        last_status: row.get(11)?,
        created_at: Timestamp::from_micros(row.get(14)?),
        updated_at: Timestamp::from_micros(row.get(15)?),
    })
}
