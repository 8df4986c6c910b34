//! Reads the rows of an event log in order of event IDs.
//!
//! Three sources are merged: the old table of rows, events with an entry in `event_lookup`, and the
//! other events of appends, whose IDs ascend with their sequence numbers. One statement reads the
//! beginning of each of them.

use noetl_model::row::EventRow;
use noetl_model::{EventId, ExecutionId, Seq, Timestamp};
use noetl_store::tail::PAGE_BYTES;
use noetl_store::{StoreError, row_bytes};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::{bounded, rows, stored_seq};
use crate::column::{PgTimestamp, number};
use crate::event_rows::{AppendColumns, append, beside_row, event_row};

const ACTION: &str = "read rows of the event log";

/// Columns of an append that `event_rows_at.sql` returns.
const AT: AppendColumns =
    AppendColumns { first_seq: 1, last_event: 2, created_at: 3, last_seq: 4, body: 5 };

/// IDs to read, both bounds included, without rows created after a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRange {
    pub(crate) execution: ExecutionId,
    pub(crate) first: EventId,
    pub(crate) last: EventId,
    pub(crate) until: Option<Timestamp>,
}

/// A page of rows, which ends after `limit` rows or with the row that fills it.
struct RowPage {
    rows: Vec<EventRow>,
    bytes: usize,
    limit: usize,
}

impl RowPage {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    fn push(&mut self, row: EventRow) {
        if !self.is_full() {
            self.bytes += row_bytes(&row);
            self.rows.push(row);
        }
    }
}

/// A row of `event_rows.sql`.
enum PagePart {
    Row(Box<EventRow>),
    Entry(EventId, Seq),
    Append(Vec<EventRow>, usize),
}

/// Rows with all IDs of a range up to `until`.
struct Part {
    rows: Vec<EventRow>,
    until: EventId,
}

impl PostgresStore {
    /// Returns up to `limit` rows in order of IDs, fewer if they exceed [`PAGE_BYTES`].
    pub(crate) async fn rows_by_id(
        &self,
        mut range: IdRange,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let mut page = RowPage { rows: Vec::new(), bytes: 0, limit };
        while !page.is_full() {
            let part = self.rows_by_id_part(range, limit).await?;
            part.rows.into_iter().for_each(|row| page.push(row));
            let next = part.until.get().checked_add(1).map(EventId::new);
            match next.filter(|next| *next <= range.last) {
                Some(next) => range.first = next,
                None => break,
            }
        }
        Ok(page.rows)
    }

    /// Reads the rows of a beginning of the range.
    async fn rows_by_id_part(&self, range: IdRange, limit: usize) -> Result<Part, StoreError> {
        let IdRange { execution, first, last, until } = range;
        let sql = include_str!("../queries/event_rows.sql");
        let make = || {
            let read = sqlx::query(sql).bind(execution.get()).bind(first.get()).bind(last.get());
            let read = read.bind(until.map(PgTimestamp::clamped)).bind(bounded(rows(limit)));
            read.bind(rows(PAGE_BYTES))
        };
        let (mut placed, mut entries, mut appends) = (Vec::new(), Vec::new(), Vec::new());
        for part in self.in_order().list(ACTION, make, page_part).await? {
            match part {
                PagePart::Row(row) => placed.push(*row),
                PagePart::Entry(event, seq) => entries.push((event, seq)),
                PagePart::Append(rows, bytes) => appends.push((rows, bytes)),
            }
        }
        let mut part = match placed.last() {
            // Appends come later, and their IDs without an entry are above those of all rows.
            Some(last) => Part { until: last.event_id, rows: placed },
            None => ascending(appends, range, limit),
        };
        self.add_entries(&mut part, range, entries, limit).await?;
        let is_wanted = |row: &EventRow| until.is_none_or(|until| row.created_at <= until);
        let covered = part.until;
        part.rows.retain(|row| row.event_id <= covered && is_wanted(row));
        part.rows.sort_unstable_by_key(|row| row.event_id);
        Ok(part)
    }

    /// Adds the rows of entries, which are in order of IDs and at most `limit`.
    async fn add_entries(
        &self,
        part: &mut Part,
        range: IdRange,
        mut entries: Vec<(EventId, Seq)>,
        limit: usize,
    ) -> Result<(), StoreError> {
        if entries.len() >= limit
            && let Some((last, _)) = entries.last()
        {
            part.until = part.until.min(*last);
        }
        entries.retain(|(event, _)| *event <= part.until);
        if entries.is_empty() {
            return Ok(());
        }
        let sql = include_str!("../queries/event_rows_at.sql");
        let seqs: Vec<i64> = entries.iter().map(|(_, seq)| stored_seq(*seq)).collect();
        let make = || {
            sqlx::query(sql).bind(range.execution.get()).bind(seqs.clone()).bind(rows(PAGE_BYTES))
        };
        let decode = |row: &PgRow| Ok(append(row, range.execution, AT)?.unwrap_or_default());
        let read = self.in_order().list(ACTION, make, decode).await?;
        let mut read: Vec<EventRow> = read.into_iter().flatten().collect();
        read.sort_unstable_by_key(|row| row.seq);
        for (number, (event, seq)) in entries.into_iter().enumerate() {
            match read.binary_search_by_key(&seq, |row| row.seq) {
                Ok(index) => part.rows.push(EventRow { context: None, ..read[index].clone() }),
                // The first append always fits, so the row of this entry was deleted.
                Err(_) if number == 0 => {}
                Err(_) => {
                    part.until = EventId::new(event.get().saturating_sub(1));
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Selects the rows of consecutive appends that have no entry: each has an ID above all before it.
fn ascending(appends: Vec<(Vec<EventRow>, usize)>, range: IdRange, limit: usize) -> Part {
    let bytes: usize = appends.iter().map(|(_, bytes)| bytes).sum();
    let events: usize = appends.iter().map(|(rows, _)| rows.len()).sum();
    let is_end = events < limit && bytes < PAGE_BYTES;
    let mut newest: Option<EventId> = None;
    let mut rows = Vec::new();
    for row in appends.into_iter().flat_map(|(rows, _)| rows) {
        if row.event_id >= range.first && newest.is_none_or(|newest| row.event_id > newest) {
            newest = Some(row.event_id);
            if row.event_id <= range.last {
                rows.push(EventRow { context: None, ..row });
            }
        }
    }
    let until = newest.filter(|_| !is_end).unwrap_or(range.last).min(range.last);
    Part { rows, until }
}

fn page_part(row: &PgRow) -> Result<PagePart, sqlx::Error> {
    let execution = ExecutionId::new(row.try_get(0)?);
    if let Some(rows) = append(row, execution, beside_row(19))? {
        let bytes = row.try_get::<&str, _>(20)?.len();
        return Ok(PagePart::Append(rows, bytes));
    }
    if row.try_get::<Option<PgTimestamp>, _>(3)?.is_none() {
        return Ok(PagePart::Entry(EventId::new(row.try_get(2)?), Seq(number(row, 1)?)));
    }
    Ok(PagePart::Row(Box::new(event_row(row)?)))
}
