//! Implements [`StepLogStore`], the step logs, within a byte budget per execution and command.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Timestamp};
use noetl_store::step_logs::{EXECUTION_BYTES_MAX, LogBudget};
use noetl_store::{
    LogGap, LogLine, LogQuery, LogStream, NewLine, SkippedLines, StepLogStore, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, parsed};
use crate::encoded_append::rows;

#[async_trait]
impl StepLogStore for SqliteStore {
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        self.write("keep lines", move |connection, _| {
            let sql = "select 1 from execution where id = ?1";
            let mut find = connection.prepare_cached(sql)?;
            if !find.exists([execution.get()])? {
                return Ok(None);
            }
            append(connection, execution.get(), &lines, &[]).map(Some)
        })
        .await
    }

    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError> {
        self.write("count lost lines", move |connection, _| {
            let sql = "select 1 from execution where id = ?1";
            let mut find = connection.prepare_cached(sql)?;
            let is_there = find.exists([execution.get()])?;
            if is_there {
                append(connection, execution.get(), &[], &lost)?;
            }
            Ok(is_there)
        })
        .await
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        let command = query.command.map(CommandId::get);
        let after = signed(query.after);
        self.read("read lines", move |connection| {
            let sql = include_str!("../queries/log_read.sql");
            let mut read = connection.prepare_cached(sql)?;
            let given = params![execution.get(), after, command, rows(query.limit)];
            read.query_map(given, line)?.collect()
        })
        .await
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        let command = command.map(CommandId::get);
        self.read("read what went of lines", move |connection| {
            let sql = "select command_id, head_until, gap_lines, gap_bytes from log_command
                where execution_id = ?1 and (?2 is null or command_id = ?2) and gap_lines > 0
                order by command_id";
            let mut read = connection.prepare_cached(sql)?;
            let gap = |row: &Row<'_>| {
                Ok(LogGap {
                    command: CommandId::new(row.get(0)?),
                    after: count(row, 1)?,
                    lines: count(row, 2)?,
                    bytes: count(row, 3)?,
                })
            };
            read.query_map((execution.get(), command), gap)?.collect()
        })
        .await
    }
}

/// Appends lines to the step logs of an existing execution, and counts skipped lines.
///
/// Returns the number of the last line.
fn append(
    connection: &Connection,
    execution: i64,
    lines: &[NewLine],
    lost: &[SkippedLines],
) -> rusqlite::Result<u64> {
    let sql = "select lines, bytes from log_execution where execution_id = ?1";
    let mut find = connection.prepare_cached(sql)?;
    let found = find.query_row([execution], |row| Ok((count(row, 0)?, count(row, 1)?)));
    let (mut last, mut bytes): (u64, u64) = found.optional()?.unwrap_or_default();
    let sql = "insert into log (execution_id, n, command_id, at, stream, text)
        values (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(sql)?;
    let mut commands: BTreeMap<i64, LogBudget> = BTreeMap::new();
    for line in lines {
        let (command, cost) = (line.command.get(), line.cost());
        let counted = match commands.entry(command) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(kept(connection, execution, command)?),
        };
        last += 1;
        if bytes + cost > EXECUTION_BYTES_MAX {
            counted.pass_over(1, cost);
            continue;
        }
        counted.add(last, cost);
        bytes += cost;
        insert.execute(params![
            execution,
            signed(last),
            command,
            line.at.as_micros(),
            line.stream.as_str(),
            line.text,
        ])?;
    }
    for SkippedLines { command, lines, bytes } in lost {
        let counted = match commands.entry(command.get()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(kept(connection, execution, command.get())?),
        };
        last += lines;
        counted.pass_over(*lines, *bytes);
    }
    for (command, mut counted) in commands {
        bytes = bytes.saturating_sub(cut(connection, execution, command, &mut counted)?);
        let mut keep = connection.prepare_cached(include_str!("../queries/log_keep.sql"))?;
        keep.execute(params![
            execution,
            command,
            signed(counted.head_until),
            signed(counted.head_bytes),
            signed(counted.tail_bytes),
            signed(counted.gap_lines),
            signed(counted.gap_bytes),
        ])?;
    }
    let sql = "insert into log_execution (execution_id, lines, bytes) values (?1, ?2, ?3)
        on conflict (execution_id) do update set lines = excluded.lines, bytes = excluded.bytes";
    connection.prepare_cached(sql)?.execute((execution, signed(last), signed(bytes)))?;
    Ok(last)
}

fn kept(connection: &Connection, execution: i64, command: i64) -> rusqlite::Result<LogBudget> {
    let mut find = connection.prepare_cached(include_str!("../queries/log_kept.sql"))?;
    let found = find.query_row((execution, command), |row| {
        Ok(LogBudget {
            head_until: count(row, 0)?,
            head_bytes: count(row, 1)?,
            tail_bytes: count(row, 2)?,
            gap_lines: count(row, 3)?,
            gap_bytes: count(row, 4)?,
        })
    });
    Ok(found.optional()?.unwrap_or_default())
}

/// Deletes the oldest lines of a command's tail that exceed its budget. Returns the bytes they
/// counted for.
fn cut(
    connection: &Connection,
    execution: i64,
    command: i64,
    counted: &mut LogBudget,
) -> rusqlite::Result<u64> {
    let excess = counted.excess();
    if excess == 0 {
        return Ok(0);
    }
    let sql = "select n, length(cast(text as blob)) from log indexed by log_command_line
        where execution_id = ?1 and command_id = ?2 and n > ?3 order by n";
    let mut read = connection.prepare_cached(sql)?;
    let mut tail = read.query((execution, command, signed(counted.head_until)))?;
    let (mut until, mut lines, mut bytes) = (0, 0, 0);
    while bytes < excess {
        let Some(row) = tail.next()? else { break };
        until = row.get(0)?;
        lines += 1;
        bytes += noetl_store::step_logs::LINE_COST + count(row, 1)?;
    }
    let sql = "delete from log
        where execution_id = ?1 and command_id = ?2 and n > ?3 and n <= ?4";
    let mut delete = connection.prepare_cached(sql)?;
    delete.execute((execution, command, signed(counted.head_until), until))?;
    counted.cut(lines, bytes);
    Ok(bytes)
}

fn line(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    Ok(LogLine {
        n: count(row, 0)?,
        line: NewLine {
            command: CommandId::new(row.get(1)?),
            at: Timestamp::from_micros(row.get(2)?),
            stream: parsed(row, 3, LogStream::from_text)?,
            text: row.get(4)?,
        },
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
