//! Encodes the events of an append, with the IDs that the writer checks.

use noetl_model::row::EventRow;
use noetl_model::row::body::AppendRow;

/// Identity of an event in an append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventIds {
    pub(crate) id: i64,
    /// ID sent with a report that was recorded under another.
    pub(crate) key: Option<i64>,
}

impl From<&EventRow> for EventIds {
    fn from(row: &EventRow) -> Self {
        Self { id: row.event_id.get(), key: row.idempotency_key }
    }
}

/// Encoded events of one log, in order.
#[derive(Debug)]
pub(crate) struct EncodedEvents {
    pub(crate) appends: Vec<AppendRow>,
    pub(crate) ids: Vec<EventIds>,
}

impl EncodedEvents {
    pub(crate) fn encode(rows: &[EventRow]) -> Self {
        Self { appends: AppendRow::encode(rows), ids: rows.iter().map(EventIds::from).collect() }
    }

    /// Returns the IDs that are not larger than `newest` and all earlier ones; all of them if
    /// `newest` is unknown.
    pub(crate) fn late(&self, newest: Option<i64>) -> impl Iterator<Item = i64> {
        let mut newest = newest;
        self.ids.iter().map(|ids| ids.id).filter(move |id| is_late(&mut newest, *id))
    }
}

/// Returns `true` if an ID is not larger than all earlier ones. Otherwise it becomes the newest.
pub(crate) fn is_late(newest: &mut Option<i64>, id: i64) -> bool {
    match newest {
        Some(largest) if id > *largest => {
            *largest = id;
            false
        }
        _ => true,
    }
}
