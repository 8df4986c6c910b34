//! Decodes rows of the event log.

use std::borrow::Cow;
use std::sync::Arc;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Origin, Seq};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::column::{PgTimestamp, number, parsed, unreadable};

/// Decodes an event, whose columns start at index 0.
pub(crate) fn event(row: &PgRow) -> Result<Event, sqlx::Error> {
    event_row(row)?.decode().map_err(unreadable)
}

/// Decodes an event row, whose columns start at index 0.
pub(crate) fn event_row(row: &PgRow) -> Result<EventRow, sqlx::Error> {
    let text = |index: usize| -> Result<Option<Arc<str>>, sqlx::Error> {
        let text: Option<&str> = row.try_get(index)?;
        Ok(text.map(Arc::from))
    };
    Ok(EventRow {
        execution_id: ExecutionId::new(row.try_get(0)?),
        seq: Seq(number(row, 1)?),
        event_id: EventId::new(row.try_get(2)?),
        created_at: row.try_get::<PgTimestamp, _>(3)?.0,
        origin: parsed(row, 4, Origin::from_text)?,
        event_type: row.try_get::<Option<String>, _>(5)?.map(Cow::Owned),
        node_name: text(6)?,
        node_type: text(7)?,
        status: row.try_get::<Option<String>, _>(8)?.map(Cow::Owned),
        command_id: row.try_get::<Option<i64>, _>(9)?.map(CommandId::new),
        parent_execution_id: row.try_get::<Option<i64>, _>(10)?.map(ExecutionId::new),
        worker_id: text(11)?,
        context: row.try_get(12)?,
        result: row.try_get(13)?,
        meta: row.try_get(14)?,
        error: row.try_get(15)?,
        duration: row.try_get(16)?,
        // Keys of other programs may not be IDs.
        idempotency_key: row.try_get::<Option<&str>, _>(17)?.and_then(|key| key.parse().ok()),
        more: row.try_get::<Option<String>, _>(18)?.filter(|more| more != "{}"),
    })
}
