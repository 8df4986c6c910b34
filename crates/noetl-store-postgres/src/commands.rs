//! Implements [`CommandStore`] on the table `command`.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, ExecutionId, Seq, Tenant};
use noetl_store::{CommandFilter, CommandRow, CommandStore, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{plain, rows};
use crate::column::{PgTimestamptz, number, parsed, small};

#[async_trait]
impl CommandStore for PostgresStore {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError> {
        let sql = include_str!("../queries/command_get.sql");
        self.one("read a command", || sqlx::query(sql).bind(id.get()), command).await
    }

    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let sql = include_str!("../queries/command_open.sql");
        self.in_order()
            .list(
                "list open commands",
                || sqlx::query(sql).bind(after.get()).bind(rows(limit)),
                command,
            )
            .await
    }

    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let sql = include_str!("../queries/command_pending.sql");
        let make = || {
            sqlx::query(sql)
                .bind(plain(wanted.pool()))
                .bind(wanted.tenant.as_ref().map(Tenant::as_str))
                .bind(wanted.kinds.as_deref())
                .bind(wanted.not_of.map(|id| id.get()))
                .bind(rows(limit))
        };
        self.list("list pending commands", make, command).await
    }

    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError> {
        let sql = "select pool, count(*) from noetl.command \
                   where status = 'PENDING' and issued_seq is not null \
                   group by pool order by pool collate \"C\"";
        self.list(
            "count pending commands",
            || sqlx::query(sql),
            |row| Ok((Arc::from(row.try_get::<&str, _>(0)?), number(row, 1)?)),
        )
        .await
    }
}

pub(crate) fn command(row: &PgRow) -> Result<CommandRow, sqlx::Error> {
    Ok(CommandRow {
        id: CommandId::new(row.try_get(0)?),
        execution: ExecutionId::new(row.try_get(1)?),
        issued: Seq(number(row, 2)?),
        step: Arc::from(row.try_get::<&str, _>(3)?),
        tool: Arc::from(row.try_get::<&str, _>(4)?),
        attempt: small(row, 5)?,
        pool: Arc::from(row.try_get::<&str, _>(6)?),
        limit_ms: row.try_get(7)?,
        state: parsed(row, 8, CommandState::from_text)?,
        worker: row.try_get::<Option<&str>, _>(9)?.map(Arc::from),
        issued_at: row.try_get::<PgTimestamptz, _>(10)?.0,
        ended_at: row.try_get::<Option<PgTimestamptz>, _>(11)?.map(|at| at.0),
    })
}
