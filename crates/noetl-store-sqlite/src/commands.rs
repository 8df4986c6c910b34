//! Implements [`CommandStore`] on the table `command`.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, ExecutionId, Seq, Tenant, Timestamp};
use noetl_store::{CommandFilter, CommandRow, CommandStore, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, parsed};
use crate::encoded_append::rows;

#[async_trait]
impl CommandStore for SqliteStore {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError> {
        self.read("read a command", move |connection| {
            let sql = include_str!("../queries/command_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row([id.get()], command).optional()
        })
        .await
    }

    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        self.read("list open commands", move |connection| {
            let sql = include_str!("../queries/command_open.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((after.get(), rows(limit)), command)?.collect()
        })
        .await
    }

    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let wanted = wanted.clone();
        self.read("list pending commands", move |connection| {
            let sql = include_str!("../queries/command_pending.sql");
            let mut list = connection.prepare_cached(sql)?;
            let kinds = wanted.kinds.as_ref().map(|kinds| serde_json::json!(kinds).to_string());
            let asked = params![
                wanted.pool(),
                wanted.tenant.as_ref().map(Tenant::as_str),
                kinds,
                wanted.not_of.map(|id| id.get()),
                rows(limit),
            ];
            list.query_map(asked, command)?.collect()
        })
        .await
    }

    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError> {
        self.read("count pending commands", |connection| {
            let sql = "select pool, count(*) from command indexed by command_pending \
                       where state = 'PENDING' group by pool order by pool";
            let mut counts = connection.prepare_cached(sql)?;
            counts.query_map([], |row| Ok((row.get(0)?, count(row, 1)?)))?.collect()
        })
        .await
    }
}

pub(crate) fn command(row: &Row<'_>) -> rusqlite::Result<CommandRow> {
    Ok(CommandRow {
        id: CommandId::new(row.get(0)?),
        execution: ExecutionId::new(row.get(1)?),
        issued: Seq(count(row, 2)?),
        step: row.get(3)?,
        tool: row.get(4)?,
        attempt: row.get(5)?,
        pool: row.get(6)?,
        limit_ms: row.get(7)?,
        state: parsed(row, 8, CommandState::from_text)?,
        worker: row.get(9)?,
        issued_at: Timestamp::from_micros(row.get(10)?),
        ended_at: instant(row, 11)?,
    })
}
