//! Where rows of a log are by their ids.
//!
//! Ids that grow along a log have no index: the append that can hold one is found by halving. Rows of
//! which that does not hold are late, and have an index of their own.

use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Seq};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{Until, row_bytes};
use rusqlite::{Connection, OptionalExtension, Rows};

use crate::column::count;
use crate::event_log::event_row;

/// The place of the event that has this id, or of the first that came with it.
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

/// The place of the event that has this id, among those whose ids grow.
pub(crate) fn find_growing(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<Seq>> {
    // What is new is above all there is, which spares the search.
    if newest_id(connection, execution)?.is_none_or(|newest| event > newest) {
        return Ok(None);
    }
    let Some(append) = last_append_until(connection, execution, event)? else { return Ok(None) };
    let sql = include_str!("../queries/event_find_growing.sql");
    let mut find = connection.prepare_cached(sql)?;
    let place = find.query_row((execution.get(), event.get(), append), |row| count(row, 0));
    Ok(place.optional()?.map(Seq))
}

/// A page of rows in the order of their ids, as of one moment: of two rows that are appended meanwhile
/// it never holds the one with the larger id alone.
pub(crate) fn rows_by_id(
    connection: &Connection,
    execution: ExecutionId,
    first: EventId,
    until: Until,
    limit: usize,
) -> rusqlite::Result<Vec<EventRow>> {
    // Declared first, so that it ends after what reads in it.
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

/// The largest id of a log, when it is known; without it, all its rows are late.
fn newest_id(connection: &Connection, execution: ExecutionId) -> rusqlite::Result<Option<EventId>> {
    let sql = "select newest_event_id from execution where id = ?1";
    let mut read = connection.prepare_cached(sql)?;
    let newest = read.query_row([execution.get()], |row| row.get::<_, Option<i64>>(0));
    Ok(newest.optional()?.flatten().map(EventId::new))
}

/// The place of the last append whose ids grow and whose first is not above this one.
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
            // There is none from the first to the middle.
            Some(_) | None => from = middle + 1,
        }
    }
    Ok(found)
}
