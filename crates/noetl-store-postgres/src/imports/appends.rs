//! Encodes imported rows as appends: one per execution and call, or several if they are large.

use std::collections::HashMap;

use noetl_model::row::EventRow;
use noetl_model::row::body::AppendRow;
use noetl_model::{EventId, ExecutionId, Map};

use super::ImportTarget;
use crate::arrays::{events_of, stored_seq};

/// Imported rows as rows of the event log and of `event_lookup`.
#[derive(Default)]
pub(super) struct ImportAppends {
    /// Each with the largest ID of its log by then, unless its last event has it.
    pub(super) rows: Vec<(AppendRow, Option<EventId>)>,
    pub(super) entries: Vec<LookupEntry>,
}

/// A row of `event_lookup`.
pub(super) struct LookupEntry {
    pub(super) execution: i64,
    pub(super) id: i64,
    pub(super) is_key: bool,
    pub(super) seq: i64,
}

impl ImportAppends {
    /// Encodes rows, and updates the largest ID of each log.
    pub(super) fn encode(
        kept: Vec<EventRow>,
        known: &mut HashMap<ExecutionId, ImportTarget>,
    ) -> Self {
        let mut appends = Self::default();
        for rows in by_execution(kept) {
            let Some(target) = rows.first().and_then(|row| known.get_mut(&row.execution_id)) else {
                continue;
            };
            let mut ids = rows.iter();
            for append in AppendRow::encode(&rows) {
                for row in ids.by_ref().take(events_of(&append)) {
                    appends.add_entries(row, target.newest);
                    target.newest = target.newest.max(Some(row.event_id));
                }
                let last = append.head.last_event;
                appends.rows.push((append, target.newest.filter(|newest| *newest != last)));
            }
        }
        appends
    }

    fn add_entries(&mut self, row: &EventRow, newest: Option<EventId>) {
        let (execution, seq) = (row.execution_id.get(), stored_seq(row.seq));
        let mut add = |id, is_key| self.entries.push(LookupEntry { execution, id, is_key, seq });
        if newest.is_some_and(|newest| row.event_id <= newest) {
            add(row.event_id.get(), false);
        }
        if let Some(key) = row.idempotency_key.or_else(|| own_key(row)) {
            add(key, true);
        }
    }
}

/// Groups rows by execution, in the order of the first row of each.
fn by_execution(rows: Vec<EventRow>) -> Vec<Vec<EventRow>> {
    let mut indexes = HashMap::new();
    let mut groups: Vec<Vec<EventRow>> = Vec::new();
    for row in rows {
        let index = *indexes.entry(row.execution_id).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Returns the ID in the `idempotency_key` that a row brought along. Keys of other programs may not be
/// IDs.
fn own_key(row: &EventRow) -> Option<i64> {
    let more = row.more.as_deref().filter(|more| more.contains("idempotency_key"))?;
    let more: Map = serde_json::from_str(more).ok()?;
    more.get("idempotency_key")?.as_str()?.parse().ok()
}
