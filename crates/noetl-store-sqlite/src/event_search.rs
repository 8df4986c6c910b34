//! Finds events of a log by ID, in appends and in rows of earlier versions.

use noetl_model::{EventId, ExecutionId, Seq};
use rusqlite::{Connection, OptionalExtension};

use crate::encoded_append::stored_seq;
use crate::{append_log, row_log};

/// Returns the sequence number of the event with this ID, or of the first event that came with it.
pub(crate) fn find(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    let indexed = find_indexed(connection, execution, event)?;
    let ascending = find_ascending(connection, execution, event)?;
    Ok(indexed.into_iter().chain(ascending).min())
}

/// Returns the sequence number of the first event that came with this ID, or that has it and is
/// late: its ID is not above all earlier ones of its log.
pub(crate) fn find_indexed(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    let row = row_log::find_indexed(connection, execution, event)?;
    if row.is_some() {
        // Rows of earlier versions are the first of their log.
        return Ok(row);
    }
    let mut find = connection.prepare_cached(include_str!("../queries/event_lookup_find.sql"))?;
    let found: Option<i64> = find.query_row((execution.get(), event.get()), |row| row.get(0))?;
    Ok(found.map(|seq| Seq(seq.unsigned_abs())))
}

/// Returns the sequence number of the event with this ID, among those that are not late.
pub(crate) fn find_ascending(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    // The ID of a new event is larger than all others, which makes the search unnecessary.
    if newest_id(connection, execution)?.is_none_or(|newest| event > newest) {
        return Ok(None);
    }
    if let Some(append) = append_log::first_reaching(connection, execution, event)? {
        let rows = append_log::rows_at(connection, execution, append.first_seq)?;
        if let Some(row) = rows.iter().find(|row| row.event_id == event) {
            return Ok(Some(row.seq));
        }
    }
    row_log::find_ascending(connection, execution, event)
}

/// Returns the ID of the event with this sequence number.
pub(crate) fn id_at(
    connection: &Connection,
    execution: ExecutionId,
    seq: Seq,
) -> rusqlite::Result<Option<EventId>> {
    match append_log::id_at(connection, execution, seq)? {
        Some(id) => Ok(Some(id)),
        None => row_log::id_at(connection, execution, seq),
    }
}

/// Returns the smallest ID among the events after this sequence number.
pub(crate) fn least_id_after(
    connection: &Connection,
    execution: ExecutionId,
    after: Seq,
) -> rusqlite::Result<Option<EventId>> {
    let mut find = connection.prepare_cached(include_str!("../queries/row_least_since.sql"))?;
    let parameters = (execution.get(), stored_seq(after));
    let row: Option<i64> = find.query_row(parameters, |row| row.get(0))?;
    let mut find = connection.prepare_cached(include_str!("../queries/event_lookup_least.sql"))?;
    let late: Option<i64> = find.query_row(parameters, |row| row.get(0))?;
    // IDs that are not late ascend, so the first of them is the smallest. Late ones before it in its
    // append are in the table of late IDs as well.
    let next = Seq(after.0.saturating_add(1));
    let rows = append_log::rows_at(connection, execution, next)?;
    let first = rows.iter().filter(|row| row.seq > after).map(|row| row.event_id.get()).min();
    Ok([row, late, first].into_iter().flatten().min().map(EventId::new))
}

/// Returns the largest event ID of a log. If it is unknown, all events of the log are late.
pub(crate) fn newest_id(
    connection: &Connection,
    execution: ExecutionId,
) -> rusqlite::Result<Option<EventId>> {
    let sql = "select newest_event_id from execution where id = ?1";
    let mut read = connection.prepare_cached(sql)?;
    let newest = read.query_row([execution.get()], |row| row.get::<_, Option<i64>>(0));
    Ok(newest.optional()?.flatten().map(EventId::new))
}

/// Returns `true` if a log has late events in appends.
pub(crate) fn has_late(connection: &Connection, execution: ExecutionId) -> rusqlite::Result<bool> {
    let sql = "select 1 from event_lookup where execution_id = ?1 and is_key = 0";
    connection.prepare_cached(sql)?.exists([execution.get()])
}

/// Returns `true` if an event of an append with this ID is late.
pub(crate) fn is_late(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<bool> {
    let sql = "select 1 from event_lookup where execution_id = ?1 and id = ?2 and is_key = 0";
    connection.prepare_cached(sql)?.exists((execution.get(), event.get()))
}

/// Returns `true` if a log has a late event with this ID, in an append or in a row of an earlier version.
pub(crate) fn has_late_id(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<bool> {
    let sql = "select 1 from event_row where execution_id = ?1 and is_late = 1 and event_id = ?2";
    let ids = (execution.get(), event.get());
    Ok(is_late(connection, execution, event)? || connection.prepare_cached(sql)?.exists(ids)?)
}
