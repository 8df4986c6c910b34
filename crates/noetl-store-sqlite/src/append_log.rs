//! Reads of the table `event_append`.

use noetl_model::row::EventRow;
use noetl_model::row::body::{AppendHead, decode};
use noetl_model::{EventId, ExecutionId, Seq, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Rows};

use crate::column::{count, unreadable};
use crate::encoded_append::stored_seq;

/// First and last event of an append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendBounds {
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    pub(crate) last_event: EventId,
    /// Largest event ID of the log up to and including this append.
    pub(crate) newest: EventId,
}

/// Returns the last append that starts at this sequence number or earlier.
pub(crate) fn bounds_at(
    connection: &Connection,
    execution: ExecutionId,
    seq: Seq,
) -> rusqlite::Result<Option<AppendBounds>> {
    let sql = include_str!("../queries/append_bounds_at.sql");
    let mut find = connection.prepare_cached(sql)?;
    let found = find.query_row((execution.get(), stored_seq(seq)), |row| {
        Ok(AppendBounds {
            first_seq: Seq(count(row, 0)?),
            last_seq: Seq(count(row, 1)?),
            last_event: EventId::new(row.get(2)?),
            newest: EventId::new(row.get(3)?),
        })
    });
    found.optional()
}

/// Returns the events of the append that holds this sequence number, or nothing if none does.
pub(crate) fn rows_at(
    connection: &Connection,
    execution: ExecutionId,
    seq: Seq,
) -> rusqlite::Result<Vec<EventRow>> {
    let sql = include_str!("../queries/append_at.sql");
    let mut find = connection.prepare_cached(sql)?;
    let found =
        find.query_row((execution.get(), stored_seq(seq)), |row| match Seq(count(row, 1)?) < seq {
            true => Ok(Vec::new()),
            false => event_rows(execution, row),
        });
    Ok(found.optional()?.unwrap_or_default())
}

/// Returns the ID of the event with this sequence number.
pub(crate) fn id_at(
    connection: &Connection,
    execution: ExecutionId,
    seq: Seq,
) -> rusqlite::Result<Option<EventId>> {
    match bounds_at(connection, execution, seq)? {
        Some(bounds) if bounds.last_seq == seq => Ok(Some(bounds.last_event)),
        Some(bounds) if bounds.last_seq > seq => {
            let rows = rows_at(connection, execution, seq)?;
            Ok(rows.iter().find(|row| row.seq == seq).map(|row| row.event_id))
        }
        _ => Ok(None),
    }
}

/// Returns the first append after which the log has an ID of at least `event`. An event with this
/// ID that is larger than all earlier ones is in this append.
///
/// Halves the log, because the newest ID never decreases along it.
pub(crate) fn first_reaching(
    connection: &Connection,
    execution: ExecutionId,
    event: EventId,
) -> rusqlite::Result<Option<AppendBounds>> {
    let end = Seq(i64::MAX.unsigned_abs());
    let Some(last) = bounds_at(connection, execution, end)? else { return Ok(None) };
    if last.newest < event {
        return Ok(None);
    }
    let mut found = last;
    // Appends that start at `from` or later and before `found` are not searched yet.
    let mut from = Seq::START;
    while from < found.first_seq {
        let middle = Seq(from.0 + (found.first_seq.0 - 1 - from.0) / 2);
        match bounds_at(connection, execution, middle)? {
            Some(bounds) if bounds.newest >= event => found = bounds,
            Some(bounds) => from = bounds.last_seq.max(middle).next(),
            None => from = middle.next(),
        }
    }
    Ok(Some(found))
}

/// Decodes an append whose columns start with those of the query `append_read`.
pub(crate) fn event_rows(execution: ExecutionId, row: &Row<'_>) -> rusqlite::Result<Vec<EventRow>> {
    let head = AppendHead {
        execution,
        first_seq: Seq(count(row, 0)?),
        last_seq: Seq(count(row, 1)?),
        last_event: EventId::new(row.get(2)?),
        created_at: Timestamp::from_micros(row.get(3)?),
    };
    let body = row.get_ref(4)?.as_str()?;
    decode(&head, body).map_err(|error| unreadable(4, error))
}

/// Reads the events of a log one after the other.
pub(crate) struct EventCursor<'s> {
    execution: ExecutionId,
    appends: Rows<'s>,
    rows: std::vec::IntoIter<EventRow>,
}

impl<'s> EventCursor<'s> {
    /// Creates a cursor over appends that the query `append_read` returns.
    pub(crate) fn new(execution: ExecutionId, appends: Rows<'s>) -> Self {
        Self { execution, appends, rows: Vec::new().into_iter() }
    }

    pub(crate) fn next(&mut self) -> rusqlite::Result<Option<EventRow>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(append) = self.appends.next()? else { return Ok(None) };
            self.rows = event_rows(self.execution, append)?.into_iter();
        }
    }
}
