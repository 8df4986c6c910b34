//! Command rows.

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, ExecutionId, Seq, Timestamp};
use noetl_store::{CommandRow, Commands, StoreError};
use rusqlite::{OptionalExtension, Row};

use crate::SqliteStore;
use crate::column::{count, instant, parsed};
use crate::item::rows;

#[async_trait]
impl Commands for SqliteStore {
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

    async fn waiting_commands(&self) -> Result<u64, StoreError> {
        self.read("count waiting commands", |connection| {
            let sql = "select count(*) from command indexed by command_open \
                       where ended_at is null and state = 'PENDING'";
            connection.prepare_cached(sql)?.query_row([], |row| count(row, 0))
        })
        .await
    }
}

fn command(row: &Row<'_>) -> rusqlite::Result<CommandRow> {
    Ok(CommandRow {
        id: CommandId::new(row.get(0)?),
        execution: ExecutionId::new(row.get(1)?),
        issued: Seq(count(row, 2)?),
        step: row.get(3)?,
        tool: row.get(4)?,
        attempt: row.get(5)?,
        state: parsed(row, 6, CommandState::from_text)?,
        worker: row.get(7)?,
        issued_at: Timestamp::from_micros(row.get(8)?),
        ended_at: instant(row, 9)?,
    })
}
