//! Finds rows of an event log by event ID.
//!
//! IDs that ascend along a log have no index: a binary search finds the append that may contain
//! one. Rows whose IDs don't ascend are late, and have a separate index.

use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Seq};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{ReadBound, row_bytes};
use rusqlite::{Connection, OptionalExtension, Rows};

use crate::column::count;
use crate::decoded_event::event_row;

/// Returns the sequence number of the event with this ID, or of the first event that came with it.
pub(crate) fn find(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    let sql = include_str!("../queries/event_find.sql");
    let mut find = connection.prepare_cached(sql)?;
    let place = find.query_row((execution.get(), event.get()), |row| count(row, 0));
    let others = place.optional()?.map(Seq);
    let growing = find_growing(connection, execution, event)?;
    Ok(others.into_iter().chain(growing).min())
}

/// Returns the sequence number of the event with this ID, among those with ascending IDs.
pub(crate) fn find_growing(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    // The ID of a new event is larger than all others, which makes the search unnecessary.
    if newest_id(connection, execution)?.is_none_or(|newest| event > newest) {
        return Ok(None);
    }
    let Some(append) = last_append_until(connection, execution, event)? else { return Ok(None) };
    let sql = include_str!("../queries/event_find_growing.sql");
    let mut find = connection.prepare_cached(sql)?;
    let place = find.query_row((execution.get(), event.get(), append), |row| count(row, 0));
    Ok(place.optional()?.map(Seq))
}

/// Returns a page of rows in ID order, from a single snapshot: of two rows that are appended
/// concurrently, it never contains only the one with the larger ID.
pub(crate) fn rows_by_id(
    connection: &Connection,
    execution: ExecutionId,
    first: EventId,
    until: ReadBound,
    limit: usize,
) -> rusqlite::Result<Vec<EventRow>> {
    // Declared first, so that it is dropped after the statements that read in it.
    let _moment = connection.unchecked_transaction()?;
    let mut growing = connection.prepare_cached(include_str!("../queries/event_rows.sql"))?;
    let has_growing = newest_id(connection, execution)?.is_some_and(|newest| first <= newest);
    let mut growing = match has_growing {
        true => {
            let start = last_append_until(connection, execution, first)?.unwrap_or(0);
            Some(growing.query((execution.get(), start, first.get()))?)
        }
        false => None,
    };
    let mut late = connection.prepare_cached(include_str!("../queries/event_rows_late.sql"))?;
    let mut late = Some(late.query((execution.get(), first.get()))?);
    let (mut next_growing, mut next_late) = (next(&mut growing)?, next(&mut late)?);
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < limit && bytes < PAGE_BYTES {
        let is_late = match (&next_growing, &next_late) {
            (Some(growing), Some(late)) => late.event_id < growing.event_id,
            (None, _) => true,
            (_, None) => false,
        };
        let found = match is_late {
            true => std::mem::replace(&mut next_late, next(&mut late)?),
            false => std::mem::replace(&mut next_growing, next(&mut growing)?),
        };
        let Some(row) = found.filter(|row| row.event_id <= until.last_id()) else { break };
        if until.last_time().is_none_or(|last| row.created_at <= last) {
            bytes += row_bytes(&row);
            page.push(row);
        }
    }
    Ok(page)
}

fn next(rows: &mut Option<Rows<'_>>) -> rusqlite::Result<Option<EventRow>> {
    let Some(rows) = rows else { return Ok(None) };
    rows.next()?.map(event_row).transpose()
}

/// Returns the largest event ID of a log. If it is unknown, all rows of the log are late.
fn newest_id(connection: &Connection, execution: ExecutionId) -> rusqlite::Result<Option<EventId>> {
    let sql = "select newest_event_id from execution where id = ?1";
    let mut read = connection.prepare_cached(sql)?;
    let newest = read.query_row([execution.get()], |row| row.get::<_, Option<i64>>(0));
    Ok(newest.optional()?.flatten().map(EventId::new))
}

/// Returns the sequence number of the last append with ascending IDs whose first ID is at most
/// `event`.
fn last_append_until(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<i64>> {
    let sql = include_str!("../queries/event_append_before.sql");
    let mut before = connection.prepare_cached(sql)?;
    let mut append = |place: i64| {
        let found = before.query_row((execution.get(), place), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        found.optional()
    };
    let Some((newest, id)) = append(i64::MAX)? else { return Ok(None) };
    if id <= event.get() {
        return Ok(Some(newest));
    }
    let (mut found, mut from, mut until) = (None, 0, newest - 1);
    while from <= until {
        let middle = from + (until - from) / 2;
        match append(middle)? {
            Some((place, id)) if place >= from && id <= event.get() => {
                found = Some(place);
                from = middle + 1;
            }
            Some((place, _)) if place >= from => until = place - 1,
            // There is no append between `from` and the middle.
            Some(_) | None => from = middle + 1,
        }
    }
    Ok(found)
}
