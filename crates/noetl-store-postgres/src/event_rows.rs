//! Decodes rows and appends of the event log.

use std::borrow::Cow;
use std::sync::Arc;

use noetl_model::row::EventRow;
use noetl_model::row::body::{self, AppendHead};
use noetl_model::{CommandId, Event, EventId, ExecutionId, Origin, Seq};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::column::{PgTimestamp, number, parsed, unreadable};

/// Indexes of the columns of an append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendColumns {
    pub(crate) first_seq: usize,
    pub(crate) last_event: usize,
    pub(crate) created_at: usize,
    pub(crate) last_seq: usize,
    pub(crate) body: usize,
}

/// Columns of an append among those of an event row, which has no value in the last two.
pub(crate) const fn beside_row(last_seq: usize) -> AppendColumns {
    AppendColumns { first_seq: 1, last_event: 2, created_at: 3, last_seq, body: last_seq + 1 }
}

/// Columns of an append that a search returns.
const FOUND: AppendColumns =
    AppendColumns { first_seq: 1, last_seq: 2, last_event: 3, created_at: 4, body: 5 };

/// Decodes the events of an append, or returns `None` if the row has no append.
pub(crate) fn append(
    row: &PgRow,
    execution: ExecutionId,
    columns: AppendColumns,
) -> Result<Option<Vec<EventRow>>, sqlx::Error> {
    let Some(text) = row.try_get::<Option<&str>, _>(columns.body)? else { return Ok(None) };
    let head = AppendHead {
        execution,
        first_seq: Seq(number(row, columns.first_seq)?),
        last_seq: Seq(number(row, columns.last_seq)?),
        last_event: EventId::new(row.try_get(columns.last_event)?),
        created_at: row.try_get::<PgTimestamp, _>(columns.created_at)?.0,
    };
    body::decode(&head, text).map(Some).map_err(unreadable)
}

/// Decodes a row of `event_read.sql`: an event or the events of an append.
pub(crate) fn log_rows(row: &PgRow) -> Result<Vec<EventRow>, sqlx::Error> {
    let execution = ExecutionId::new(row.try_get(0)?);
    match append(row, execution, beside_row(19))? {
        Some(rows) => Ok(rows),
        None => Ok(vec![event_row(row)?]),
    }
}

/// Decodes the events of what `event_read.sql` returned: up to `limit` after `after`.
pub(crate) fn events(
    read: Vec<Vec<EventRow>>,
    after: Seq,
    limit: usize,
) -> Result<Vec<Event>, sqlx::Error> {
    let rows = read.into_iter().flatten().filter(|row| row.seq > after).take(limit);
    rows.map(|row| row.decode().map_err(unreadable)).collect()
}

/// Decodes a row of `event_find.sql`: the sequence number of the event with this ID, or of the first
/// report that was sent with it.
pub(crate) fn found_seq(
    row: &PgRow,
    execution: ExecutionId,
    event: EventId,
) -> Result<Option<Seq>, sqlx::Error> {
    let known = row.try_get::<Option<i64>, _>(0)?.map(|seq| Seq(seq.unsigned_abs()));
    let rows = append(row, execution, FOUND)?.unwrap_or_default();
    let appended = rows.iter().find(|row| row.event_id == event).map(|row| row.seq);
    Ok(known.into_iter().chain(appended).min())
}

/// Decodes a row of `event_find_many.sql`: IDs of events, among which those that were looked for are.
pub(crate) fn found_ids(row: &PgRow, execution: ExecutionId) -> Result<Vec<EventId>, sqlx::Error> {
    let known = row.try_get::<Option<i64>, _>(0)?.map(EventId::new);
    let rows = append(row, execution, FOUND)?.unwrap_or_default();
    Ok(known.into_iter().chain(rows.iter().map(|row| row.event_id)).collect())
}

/// Decodes a row of `event_least_since.sql`.
pub(crate) fn least_id(
    row: &PgRow,
    execution: ExecutionId,
    after: Seq,
) -> Result<Option<EventId>, sqlx::Error> {
    let least = row.try_get::<Option<i64>, _>(0)?.map(EventId::new);
    let rows = append(row, execution, FOUND)?.unwrap_or_default();
    let appended = rows.iter().filter(|row| row.seq > after).map(|row| row.event_id);
    Ok(least.into_iter().chain(appended).min())
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
