//! Command rows.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, ExecutionId, Seq};
use noetl_store::{CommandRow, Commands, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{At, number, parsed, small};

#[async_trait]
impl Commands for PostgresStore {
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
        self.list(
            "list open commands",
            || sqlx::query(sql).bind(after.get()).bind(rows(limit)),
            command,
        )
        .await
    }

    async fn waiting_commands(&self) -> Result<u64, StoreError> {
        let sql = "select count(*) from noetl.command \
                   where completed_at is null and issued_seq is not null and status = 'PENDING'";
        let count = self.one("count waiting commands", || sqlx::query(sql), |row| number(row, 0));
        Ok(count.await?.unwrap_or(0))
    }
}

fn command(row: &PgRow) -> Result<CommandRow, sqlx::Error> {
    Ok(CommandRow {
        id: CommandId::new(row.try_get(0)?),
        execution: ExecutionId::new(row.try_get(1)?),
        issued: Seq(number(row, 2)?),
        step: Arc::from(row.try_get::<&str, _>(3)?),
        tool: Arc::from(row.try_get::<&str, _>(4)?),
        attempt: small(row, 5)?,
        state: parsed(row, 6, CommandState::from_text)?,
        worker: row.try_get::<Option<&str>, _>(7)?.map(Arc::from),
        issued_at: row.try_get::<At, _>(8)?.0,
        ended_at: row.try_get::<Option<At>, _>(9)?.map(|at| at.0),
    })
}
