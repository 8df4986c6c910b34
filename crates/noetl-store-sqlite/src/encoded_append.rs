//! Encodes appends for the writer.

use std::time::Duration;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, TimerId};
use noetl_store::{Append, CommandChange, ExecutionRow, Malformed, NewTimer, StartAppend};

use crate::encoded_events::EncodedEvents;

/// An append, checked and encoded by the caller. The writer thread is the bottleneck of the store
/// and does no work that can be done without the database.
#[derive(Debug)]
pub(crate) struct EncodedAppend {
    pub(crate) expected: i64,
    /// ID of the event at `expected`.
    pub(crate) after: Option<i64>,
    /// ID of the last appended event.
    pub(crate) last: Option<i64>,
    pub(crate) start: Option<StartAppend>,
    pub(crate) row: ExecutionRow,
    pub(crate) events: EncodedEvents,
    /// Whether one of the events ends the execution.
    pub(crate) is_end: bool,
    /// Rows of the events for the outbox. Empty if the outbox is disabled.
    pub(crate) outgoing: Vec<EventRow>,
    pub(crate) changes: Vec<CommandChange>,
    pub(crate) leases: Vec<(CommandId, Duration)>,
    /// Largest ID of the events.
    pub(crate) newest: i64,
    pub(crate) due: Vec<EncodedTimer>,
    pub(crate) delivered: Vec<TimerId>,
    pub(crate) blobs: Vec<String>,
}

/// A timer with its payload as text.
#[derive(Debug)]
pub(crate) struct EncodedTimer {
    pub(crate) row: NewTimer,
    pub(crate) payload: String,
}

impl From<NewTimer> for EncodedTimer {
    fn from(row: NewTimer) -> Self {
        let payload = row.payload.to_string();
        Self { row, payload }
    }
}

impl EncodedAppend {
    pub(crate) fn encode(append: Append, has_outbox: bool) -> Result<Self, Malformed> {
        append.check()?;
        let Append { expected, after, start, events, row, leases, commands, due, delivered, blobs } =
            append;
        let last = events.last().map(|event| event.id.get());
        let newest = events.iter().map(|event| event.id.get()).max();
        let rows: Vec<EventRow> = events.iter().map(|event| EventRow::from(&**event)).collect();
        Ok(Self {
            expected: stored_seq(expected),
            after: after.map(|id| id.get()),
            last,
            start,
            row,
            due: due.into_iter().map(EncodedTimer::from).collect(),
            delivered,
            blobs: blobs.iter().map(ToString::to_string).collect(),
            changes: commands,
            leases,
            newest: newest.unwrap_or(i64::MIN),
            is_end: events.iter().any(|event| event.fact.is_end()),
            events: EncodedEvents::encode(&rows),
            outgoing: if has_outbox { rows } else { Vec::new() },
        })
    }
}

/// Converts a sequence number to its stored form. Numbers beyond `i64::MAX` don't occur in a log;
/// as the start of a read they are past every event.
pub(crate) fn stored_seq(seq: noetl_model::Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// Converts a row count to an SQLite integer.
pub(crate) fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
