//! Encodes the events of appends as rows of the event log, and binds them.

use noetl_model::row::EventRow;
use noetl_model::row::body::AppendRow;

use super::{Append_, AppendChain, stored_seq};
use crate::column::PgTimestamp;

/// Events of an append, as rows of the event log.
#[derive(Debug)]
pub(crate) struct EncodedEvents {
    rows: Vec<AppendRow>,
    /// IDs of all events, in order.
    ids: Vec<i64>,
    /// IDs that reports were sent with, and the sequence numbers of the reports.
    keys: Vec<(i64, i64)>,
}

impl EncodedEvents {
    pub(crate) fn encode(rows: &[EventRow]) -> Self {
        let key = |row: &EventRow| Some((row.idempotency_key?, stored_seq(row.seq)));
        Self {
            rows: AppendRow::encode(rows),
            ids: rows.iter().map(|row| row.event_id.get()).collect(),
            keys: rows.iter().filter_map(key).collect(),
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i64> + Clone {
        self.ids.iter().copied()
    }
}

/// Returns the number of events in a row.
pub(crate) fn events_of(row: &AppendRow) -> usize {
    let events = row.head.last_seq.0.saturating_sub(row.head.first_seq.0).saturating_add(1);
    usize::try_from(events).unwrap_or(usize::MAX)
}

/// A row of the event log with values that depend on the rows before it in the statement.
struct PlacedAppend<'a> {
    row: &'a AppendRow,
    /// Largest event ID of the chain up to and including this row.
    newest: i64,
    /// Number of events in the statement up to and including this row.
    until: i64,
}

fn placed<'a>(chains: &[AppendChain<'a>]) -> Vec<PlacedAppend<'a>> {
    let mut placed = Vec::with_capacity(chains.len());
    let mut until = 0;
    for chain in chains {
        let mut newest = i64::MIN;
        for item in chain {
            let mut ids = item.appended.ids.iter();
            for row in &item.appended.rows {
                let count = events_of(row);
                newest = ids.by_ref().take(count).copied().fold(newest, i64::max);
                until += i64::try_from(count).unwrap_or(i64::MAX);
                placed.push(PlacedAppend { row, newest, until });
            }
        }
    }
    placed
}

pub(super) fn bind_appends<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let placed = placed(chains);
    let rows = placed.iter();
    let query = columns!(
        query,
        rows,
        |placed| placed.row.head.execution.get(),
        stored_seq(placed.row.head.first_seq),
        stored_seq(placed.row.head.last_seq),
        placed.row.head.last_event.get(),
        placed.newest,
        placed.until,
        PgTimestamp(placed.row.head.created_at),
        placed.row.body.as_str(),
    );
    let ids = chains.iter().flatten().flat_map(|item| item.appended.ids());
    let query = query.bind(ids.collect::<Vec<_>>());
    let keys = chains.iter().flatten().flat_map(|item| {
        let execution = item.execution();
        item.appended.keys.iter().map(move |(key, seq)| (execution, *key, *seq))
    });
    columns!(query, keys, |of| of.0, of.1, of.2)
}
