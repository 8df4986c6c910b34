//! Deletes event logs of purged executions from their start, with the commands they issued.

use noetl_model::ExecutionId;
use noetl_model::row::{EventRow, types};
use noetl_store::retention::PurgeCounts;
use rusqlite::Connection;

use super::remains::signed;
use crate::append_log::{EventCursor, event_rows};

/// Maximum number of appends per transaction.
const APPENDS: i64 = 250;

/// Deletes rows of earlier versions, with the commands they issued.
pub(super) fn remove_rows(
    connection: &Connection,
    execution: i64,
    room: &mut u64,
    removed: &mut PurgeCounts,
) -> rusqlite::Result<()> {
    let mut find = connection.prepare_cached(include_str!("../../queries/row_purge_until.sql"))?;
    let last: Option<i64> = find.query_row((execution, signed(*room)), |row| row.get(0))?;
    let Some(last) = last else { return Ok(()) };
    let sql = include_str!("../../queries/row_command_purge.sql");
    removed.commands += number(connection.prepare_cached(sql)?.execute((execution, last))?);
    let sql = include_str!("../../queries/row_purge.sql");
    let events = number(connection.prepare_cached(sql)?.execute((execution, last))?);
    removed.events += events;
    *room = room.saturating_sub(events);
    Ok(())
}

/// Deletes appends, with the commands they issued, until `room` events are deleted.
pub(super) fn remove_appends(
    connection: &Connection,
    execution: i64,
    room: &mut u64,
    removed: &mut PurgeCounts,
) -> rusqlite::Result<()> {
    let sql = include_str!("../../queries/append_purge_read.sql");
    let mut read = connection.prepare_cached(sql)?;
    let sql = "delete from command where id = ?1 and execution_id = ?2";
    let mut delete_command = connection.prepare_cached(sql)?;
    let sql = "delete from event_append where execution_id = ?1 and first_seq <= ?2";
    let mut delete = connection.prepare_cached(sql)?;
    while *room > 0 {
        let mut appends = read.query((execution, APPENDS))?;
        let mut last = None;
        while *room > 0
            && let Some(append) = appends.next()?
        {
            // A damaged body must not stop the purge.
            let events = event_rows(ExecutionId::new(execution), append).unwrap_or_default();
            for command in events.iter().filter_map(issued) {
                removed.commands += number(delete_command.execute((command, execution))?);
            }
            let (first, last_of_append): (i64, i64) = (append.get(0)?, append.get(1)?);
            let events = (last_of_append - first + 1).unsigned_abs();
            last = Some(first);
            removed.events += events;
            *room = room.saturating_sub(events);
        }
        drop(appends);
        let Some(last) = last else { return Ok(()) };
        delete.execute((execution, last))?;
    }
    Ok(())
}

/// Returns the number of commands of an execution, without those that ended at a time or earlier.
pub(super) fn count_commands(
    connection: &Connection,
    execution: ExecutionId,
    ended_after: i64,
) -> rusqlite::Result<u64> {
    let sql = include_str!("../../queries/row_command_count.sql");
    let mut count = connection.prepare_cached(sql)?;
    let mut commands: u64 =
        count.query_row((execution.get(), ended_after), |row| crate::column::count(row, 0))?;
    let sql = "select 1 from command where id = ?1 and execution_id = ?2 \
               and (ended_at is null or ended_at > ?3)";
    let mut exists = connection.prepare_cached(sql)?;
    let mut read = connection.prepare_cached(include_str!("../../queries/append_read.sql"))?;
    let mut events = EventCursor::new(execution, read.query((execution.get(), 0))?);
    while let Some(row) = events.next()? {
        if let Some(command) = issued(&row)
            && exists.exists((command, execution.get(), ended_after))?
        {
            commands += 1;
        }
    }
    Ok(commands)
}

/// Returns the ID of the command that an event issued.
fn issued(row: &EventRow) -> Option<i64> {
    let is_issue = row.event_type.as_deref() == Some(types::COMMAND_ISSUED);
    is_issue.then_some(row.event_id.get())
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
