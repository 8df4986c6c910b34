//! Decodes rows of the event log.

use std::borrow::Cow;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Origin, Seq, Timestamp};
use rusqlite::Row;

use crate::column::{count, parsed, unreadable};

pub(crate) fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    event_row(row)?.decode().map_err(|error| unreadable(0, error))
}

/// Decodes an event row, whose columns start at index 0.
pub(crate) fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        execution_id: ExecutionId::new(row.get(0)?),
        seq: Seq(count(row, 1)?),
        event_id: EventId::new(row.get(2)?),
        created_at: Timestamp::from_micros(row.get(3)?),
        origin: parsed(row, 4, Origin::from_text)?,
        event_type: row.get::<_, Option<String>>(5)?.map(Cow::Owned),
        node_name: row.get(6)?,
        node_type: row.get(7)?,
        status: row.get::<_, Option<String>>(8)?.map(Cow::Owned),
        command_id: row.get::<_, Option<i64>>(9)?.map(CommandId::new),
        parent_execution_id: row.get::<_, Option<i64>>(10)?.map(ExecutionId::new),
        worker_id: row.get(11)?,
        meta: row.get(12)?,
        error: row.get(13)?,
        context: row.get(14)?,
        result: row.get(15)?,
        duration: row.get(16)?,
        idempotency_key: row.get(17)?,
        more: row.get(18)?,
    })
}
