//! Implements [`StepLogStore`], the step logs, within a byte budget per execution and command.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId};
use noetl_store::step_logs::{EXECUTION_BYTES_MAX, LINE_COST, LogBudget};
use noetl_store::{
    LogGap, LogLine, LogQuery, LogStream, NewLine, SkippedLines, StepLogStore, StoreError,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, number, parsed};
use crate::error::{StatementOutcome, fate, write_error};

const ACTION: &str = "keep lines";

/// Maximum number of attempts of a transaction that the server rolls back because of conflicts.
const TRIES_MAX: usize = 10;

#[async_trait]
impl StepLogStore for PostgresStore {
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        self.count_lines(execution, &lines, &[]).await
    }

    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError> {
        Ok(self.count_lines(execution, &[], &lost).await?.is_some())
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        let sql = include_str!("../queries/log_read.sql");
        let make = || {
            sqlx::query(sql)
                .bind(execution.get())
                .bind(signed(query.after))
                .bind(query.command.map(CommandId::get))
                .bind(rows(query.limit))
        };
        self.list("read lines", make, line).await
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        let sql = include_str!("../queries/log_gaps.sql");
        let make = || sqlx::query(sql).bind(execution.get()).bind(command.map(CommandId::get));
        let gap = |row: &PgRow| {
            Ok(LogGap {
                command: CommandId::new(row.try_get(0)?),
                after: number(row, 1)?,
                lines: number(row, 2)?,
                bytes: number(row, 3)?,
            })
        };
        self.list("read what went of lines", make, gap).await
    }
}

impl PostgresStore {
    /// Appends lines to the step logs of an execution, and counts skipped lines.
    ///
    /// Returns the number of the last line, or `None` if the execution does not exist.
    async fn count_lines(
        &self,
        execution: ExecutionId,
        lines: &[NewLine],
        lost: &[SkippedLines],
    ) -> Result<Option<u64>, StoreError> {
        // Statements are unnamed behind a transaction-pooling proxy.
        let is_kept = !self.how().speaker.is_pooled;
        let mut tries = 1;
        loop {
            let mut transaction = self.begin(ACTION).await?;
            let done = append(&mut transaction, is_kept, execution.get(), lines, lost).await;
            let done = match done {
                Ok(done) => transaction.commit().await.map(|()| done),
                Err(error) => Err(error),
            };
            match done {
                Ok(done) => return Ok(done),
                Err(error) if tries < TRIES_MAX && fate(&error) == StatementOutcome::Retry => {
                    tries += 1
                }
                Err(error) => return Err(write_error(ACTION, error)),
            }
        }
    }
}

async fn append(
    connection: &mut PgConnection,
    is_kept: bool,
    execution: i64,
    lines: &[NewLine],
    lost: &[SkippedLines],
) -> Result<Option<u64>, sqlx::Error> {
    // Lock the row against a purge, so that no line outlives its execution.
    let sql = "select from noetl.execution where execution_id = $1 for key share";
    if sqlx::query(sql)
        .persistent(is_kept)
        .bind(execution)
        .fetch_optional(&mut *connection)
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let sql = "insert into noetl.log_execution (execution_id, lines, bytes) values ($1, 0, 0) \
               on conflict do nothing";
    sqlx::query(sql).persistent(is_kept).bind(execution).execute(&mut *connection).await?;
    let sql = "select lines, bytes from noetl.log_execution where execution_id = $1 for update";
    let found =
        sqlx::query(sql).persistent(is_kept).bind(execution).fetch_one(&mut *connection).await?;
    let (mut last, mut bytes) = (number(&found, 0)?, number(&found, 1)?);
    let mut commands: BTreeMap<i64, LogBudget> = BTreeMap::new();
    let mut columns = LineColumns::default();
    for line in lines {
        let (command, cost) = (line.command.get(), line.cost());
        let counted = match commands.entry(command) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(kept(connection, is_kept, execution, command).await?),
        };
        last += 1;
        if bytes + cost > EXECUTION_BYTES_MAX {
            counted.pass_over(1, cost);
            continue;
        }
        counted.add(last, cost);
        bytes += cost;
        columns.push(last, line);
    }
    columns.insert(connection, is_kept, execution).await?;
    for SkippedLines { command, lines, bytes } in lost {
        let command = command.get();
        let counted = match commands.entry(command) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(kept(connection, is_kept, execution, command).await?),
        };
        last += lines;
        counted.pass_over(*lines, *bytes);
    }
    for (command, mut counted) in commands {
        bytes =
            bytes.saturating_sub(cut(connection, is_kept, execution, command, &mut counted).await?);
        sqlx::query(include_str!("../queries/log_keep.sql"))
            .persistent(is_kept)
            .bind(execution)
            .bind(command)
            .bind(signed(counted.head_until))
            .bind(signed(counted.head_bytes))
            .bind(signed(counted.tail_bytes))
            .bind(signed(counted.gap_lines))
            .bind(signed(counted.gap_bytes))
            .execute(&mut *connection)
            .await?;
    }
    let sql = "update noetl.log_execution set lines = $2, bytes = $3 where execution_id = $1";
    let noted =
        sqlx::query(sql).persistent(is_kept).bind(execution).bind(signed(last)).bind(signed(bytes));
    noted.execute(&mut *connection).await?;
    Ok(Some(last))
}

async fn kept(
    connection: &mut PgConnection,
    is_kept: bool,
    execution: i64,
    command: i64,
) -> Result<LogBudget, sqlx::Error> {
    let sql = "select head_until, head_bytes, tail_bytes, gap_lines, gap_bytes \
               from noetl.log_command where execution_id = $1 and command_id = $2";
    let find = sqlx::query(sql).persistent(is_kept).bind(execution).bind(command);
    let Some(row) = find.fetch_optional(&mut *connection).await? else {
        return Ok(LogBudget::default());
    };
    Ok(LogBudget {
        head_until: number(&row, 0)?,
        head_bytes: number(&row, 1)?,
        tail_bytes: number(&row, 2)?,
        gap_lines: number(&row, 3)?,
        gap_bytes: number(&row, 4)?,
    })
}

/// Deletes the oldest lines of a command's tail that exceed its budget. Returns the bytes they
/// counted for.
async fn cut(
    connection: &mut PgConnection,
    is_kept: bool,
    execution: i64,
    command: i64,
    counted: &mut LogBudget,
) -> Result<u64, sqlx::Error> {
    let excess = counted.excess();
    if excess == 0 {
        return Ok(0);
    }
    let gone = sqlx::query(include_str!("../queries/log_cut.sql"))
        .persistent(is_kept)
        .bind(execution)
        .bind(command)
        .bind(signed(counted.head_until))
        .bind(signed(excess))
        .bind(signed(LINE_COST))
        .fetch_one(&mut *connection)
        .await?;
    let (lines, bytes) = (number(&gone, 0)?, number(&gone, 1)?);
    counted.cut(lines, bytes);
    Ok(bytes)
}

/// Columns of the lines that one statement inserts.
#[derive(Default)]
struct LineColumns {
    n: Vec<i64>,
    command: Vec<i64>,
    at: Vec<PgTimestamptz>,
    stream: Vec<&'static str>,
    text: Vec<String>,
}

impl LineColumns {
    fn push(&mut self, n: u64, line: &NewLine) {
        self.n.push(signed(n));
        self.command.push(line.command.get());
        self.at.push(PgTimestamptz::clamped(line.at));
        self.stream.push(line.stream.as_str());
        self.text.push(line.text.clone());
    }

    async fn insert(
        self,
        connection: &mut PgConnection,
        is_kept: bool,
        to: i64,
    ) -> Result<(), sqlx::Error> {
        if self.n.is_empty() {
            return Ok(());
        }
        let insert = sqlx::query(include_str!("../queries/log_insert.sql"))
            .persistent(is_kept)
            .bind(to)
            .bind(self.n)
            .bind(self.command)
            .bind(self.at)
            .bind(self.stream)
            .bind(self.text);
        insert.execute(connection).await.map(|_| ())
    }
}

fn line(row: &PgRow) -> Result<LogLine, sqlx::Error> {
    Ok(LogLine {
        n: number(row, 0)?,
        line: NewLine {
            command: CommandId::new(row.try_get(1)?),
            at: row.try_get::<PgTimestamptz, _>(2)?.0,
            stream: parsed(row, 3, LogStream::from_text)?,
            text: row.try_get(4)?,
        },
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
