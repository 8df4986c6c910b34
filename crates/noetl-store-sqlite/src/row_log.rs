//! Reads of the table `event_row`, which holds events that earlier versions wrote.
//!
//! IDs that ascend along a log have no index: a binary search finds the rows that may contain one.
//! Rows whose IDs don't ascend are late, and have a separate index.

use noetl_model::{EventId, ExecutionId, Seq};
use rusqlite::{Connection, OptionalExtension};

use crate::column::count;
use crate::encoded_append::stored_seq;

/// Returns the sequence number of the first event that came with this ID, or that has it and is
/// late.
pub(crate) fn find_indexed(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    let mut find = connection.prepare_cached(include_str!("../queries/row_find.sql"))?;
    let found = find.query_row((execution.get(), event.get()), |row| count(row, 0));
    Ok(found.optional()?.map(Seq))
}

/// Returns the sequence number of the event with this ID, among those with ascending IDs.
pub(crate) fn find_ascending(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    let Some(first) = last_start_until(connection, execution, event)? else { return Ok(None) };
    let mut find = connection.prepare_cached(include_str!("../queries/row_find_growing.sql"))?;
    let found = find.query_row((execution.get(), event.get(), first), |row| count(row, 0));
    Ok(found.optional()?.map(Seq))
}

/// Returns the ID of the event with this sequence number.
pub(crate) fn id_at(
    connection: &Connection,
    execution: ExecutionId,
    seq: Seq,
) -> rusqlite::Result<Option<EventId>> {
    let mut find = connection.prepare_cached(include_str!("../queries/row_id_at.sql"))?;
    let found = find.query_row((execution.get(), stored_seq(seq)), |row| row.get(0));
    Ok(found.optional()?.map(EventId::new))
}

/// Returns the sequence number at which the last rows with ascending IDs start whose first ID is at
/// most `event`.
pub(crate) fn last_start_until(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<i64>> {
    let mut before = connection.prepare_cached(include_str!("../queries/row_append_before.sql"))?;
    let mut start = |seq: i64| {
        let found = before.query_row((execution.get(), seq), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        found.optional()
    };
    let Some((newest, id)) = start(i64::MAX)? else { return Ok(None) };
    if id <= event.get() {
        return Ok(Some(newest));
    }
    let (mut found, mut from, mut until) = (None, 0, newest - 1);
    while from <= until {
        let middle = from + (until - from) / 2;
        match start(middle)? {
            Some((seq, id)) if seq >= from && id <= event.get() => {
                found = Some(seq);
                from = middle + 1;
            }
            Some((seq, _)) if seq >= from => until = seq - 1,
            // Nothing starts between `from` and the middle.
            Some(_) | None => from = middle + 1,
        }
    }
    Ok(found)
}
