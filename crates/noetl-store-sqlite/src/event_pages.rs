//! Pages of a log in the order of event IDs.

use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Seq};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{ReadBound, row_bytes};
use rusqlite::{CachedStatement, Connection, Rows};

use crate::append_log::{self, EventCursor};
use crate::decoded_event::event_row;
use crate::encoded_append::stored_seq;
use crate::event_search::{has_late, is_late, newest_id};
use crate::row_log;

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
    let _snapshot = connection.unchecked_transaction()?;
    let log = SearchedLog { connection, execution, has_late: has_late(connection, execution)? };
    let mut statements = Statements::prepare(connection)?;
    let mut sources = statements.sources(&log, first)?;
    let mut next: Vec<Option<EventRow>> =
        sources.iter_mut().map(|source| source.next(&log)).collect::<rusqlite::Result<_>>()?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < limit && bytes < PAGE_BYTES {
        let ids = next.iter().map(|row| row.as_ref().map(|row| row.event_id)).enumerate();
        let least = ids.filter_map(|(index, id)| id.map(|id| (id, index))).min();
        let Some((_, index)) = least else { break };
        let found = std::mem::replace(&mut next[index], sources[index].next(&log)?);
        let Some(row) = found.filter(|row| row.event_id <= until.last_id()) else { break };
        if until.last_time().is_none_or(|last| row.created_at <= last) {
            bytes += row_bytes(&row);
            page.push(row);
        }
    }
    Ok(page)
}

struct SearchedLog<'c> {
    connection: &'c Connection,
    execution: ExecutionId,
    /// Whether some events of appends are late.
    has_late: bool,
}

struct Statements<'c> {
    rows: CachedStatement<'c>,
    late_rows: CachedStatement<'c>,
    appends: CachedStatement<'c>,
    lookup: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            rows: connection.prepare_cached(include_str!("../queries/row_rows.sql"))?,
            late_rows: connection.prepare_cached(include_str!("../queries/row_rows_late.sql"))?,
            appends: connection.prepare_cached(include_str!("../queries/append_read.sql"))?,
            lookup: connection.prepare_cached(include_str!("../queries/event_lookup_rows.sql"))?,
        })
    }

    /// Returns the parts of a log from an ID on, each in the order of IDs.
    fn sources(
        &mut self,
        log: &SearchedLog<'_>,
        first: EventId,
    ) -> rusqlite::Result<Vec<Source<'_>>> {
        let id = log.execution.get();
        let mut sources = vec![Source::Rows(self.late_rows.query((id, first.get()))?)];
        if log.has_late {
            let entries = self.lookup.query((id, first.get()))?;
            sources.push(Source::Late(LateEvents { entries, append: Vec::new() }));
        }
        let newest = newest_id(log.connection, log.execution)?;
        if newest.is_some_and(|newest| first <= newest) {
            let start = row_log::last_start_until(log.connection, log.execution, first)?;
            let rows = self.rows.query((id, start.unwrap_or(0), first.get()))?;
            sources.push(Source::Rows(rows));
            if let Some(start) = append_log::first_reaching(log.connection, log.execution, first)? {
                let appends = self.appends.query((id, stored_seq(start.first_seq)))?;
                let events = EventCursor::new(log.execution, appends);
                sources.push(Source::Ascending { events, first });
            }
        }
        Ok(sources)
    }
}

/// A part of a log in the order of IDs.
enum Source<'s> {
    /// Rows of earlier versions.
    Rows(Rows<'s>),
    /// Events of appends whose IDs are above all earlier ones.
    Ascending { events: EventCursor<'s>, first: EventId },
    /// Events of appends whose IDs are not.
    Late(LateEvents<'s>),
}

impl Source<'_> {
    fn next(&mut self, log: &SearchedLog<'_>) -> rusqlite::Result<Option<EventRow>> {
        let row = match self {
            Self::Rows(rows) => rows.next()?.map(event_row).transpose()?,
            Self::Ascending { events, first } => loop {
                let Some(row) = events.next()? else { break None };
                let is_late =
                    || log.has_late.then(|| is_late(log.connection, log.execution, row.event_id));
                if row.event_id >= *first && !is_late().transpose()?.unwrap_or(false) {
                    break Some(row);
                }
            },
            Self::Late(late) => late.next(log)?,
        };
        // What an event was told may be large, and no caller reads it here.
        Ok(row.map(|row| EventRow { context: None, ..row }))
    }
}

struct LateEvents<'s> {
    entries: Rows<'s>,
    /// Events of the append that held the last one. Neighbors are often in the same append.
    append: Vec<EventRow>,
}

impl LateEvents<'_> {
    fn next(&mut self, log: &SearchedLog<'_>) -> rusqlite::Result<Option<EventRow>> {
        let Some(entry) = self.entries.next()? else { return Ok(None) };
        let (id, seq): (i64, i64) = (entry.get(0)?, entry.get(1)?);
        let seq = Seq(seq.unsigned_abs());
        let is_in = |rows: &[EventRow]| rows.iter().any(|row| row.seq == seq);
        if !is_in(&self.append) {
            self.append = append_log::rows_at(log.connection, log.execution, seq)?;
        }
        let row = self.append.iter().find(|row| row.seq == seq && row.event_id.get() == id);
        match row {
            Some(row) => Ok(Some(row.clone())),
            None => Err(crate::column::unreadable(1, format!("no event {id} at {seq}"))),
        }
    }
}
