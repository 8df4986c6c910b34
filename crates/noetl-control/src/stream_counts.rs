//! What became of events on their way to the event stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::row::types;
use noetl_model::{Clock, Timestamp};

/// The types that are counted by name. Others may be anything, and there may be any number of them.
const NAMED: [&str; 17] = [
    types::PLAYBOOK_STARTED,
    types::STEP_ENTER,
    types::TOKENS_DROPPED,
    types::COMMAND_ISSUED,
    types::COMMAND_CLAIMED,
    types::COMMAND_STARTED,
    types::CALL_DONE,
    types::CALL_ERROR,
    types::COMMAND_COMPLETED,
    types::COMMAND_FAILED,
    types::COMMAND_EXPIRED,
    types::COMMAND_CANCELLED,
    types::CTX_UPDATED,
    types::STEP_EXIT,
    types::PLAYBOOK_COMPLETED,
    types::PLAYBOOK_FAILED,
    types::PLAYBOOK_CANCELLED,
];

/// The name all other types are counted under.
const OTHER: &str = "other";

/// The name a type is counted under.
pub(crate) fn label(event_type: Option<&str>) -> &'static str {
    NAMED.into_iter().find(|name| Some(*name) == event_type).unwrap_or(OTHER)
}

/// Counts since the process began. Shared by everything that publishes.
pub struct StreamCounts {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    published: BTreeMap<&'static str, u64>,
    skipped: BTreeMap<&'static str, u64>,
    by_reference: u64,
    cursors: BTreeMap<(Arc<str>, String), i64>,
    oldest: BTreeMap<Arc<str>, Timestamp>,
}

impl StreamCounts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Events the stream has, by type.
    pub fn published(&self) -> BTreeMap<&'static str, u64> {
        self.state().published.clone()
    }

    /// Events that cannot be published, by type.
    pub fn skipped(&self) -> BTreeMap<&'static str, u64> {
        self.state().skipped.clone()
    }

    /// Events that were too large and went out by reference.
    pub fn by_reference(&self) -> u64 {
        self.state().by_reference
    }

    /// How far each cursor is, by database and name.
    pub fn cursors(&self) -> BTreeMap<(Arc<str>, String), i64> {
        self.state().cursors.clone()
    }

    /// How old the oldest event is that this process knows of and the stream does not have.
    pub fn oldest_age(&self) -> Duration {
        let oldest = self.state().oldest.values().min().copied();
        oldest.map_or(Duration::ZERO, |oldest| self.clock.now().since(oldest))
    }

    pub(crate) fn add_published(&self, label: &'static str) {
        *self.state().published.entry(label).or_default() += 1;
    }

    pub(crate) fn add_skipped(&self, label: &'static str) {
        *self.state().skipped.entry(label).or_default() += 1;
    }

    pub(crate) fn add_by_reference(&self) {
        self.state().by_reference += 1;
    }

    pub(crate) fn set_cursor(&self, database: &Arc<str>, name: &str, position: i64) {
        self.state().cursors.insert((database.clone(), name.to_owned()), position);
    }

    pub(crate) fn set_oldest(&self, database: &Arc<str>, oldest: Option<Timestamp>) {
        let mut state = self.state();
        match oldest {
            Some(oldest) => state.oldest.insert(database.clone(), oldest),
            None => state.oldest.remove(database),
        };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_type_that_anybody_can_make_up_is_no_label() {
        assert_eq!(label(Some("call.done")), "call.done");
        for unknown in [Some("x"), Some(""), Some("call.done "), None] {
            assert_eq!(label(unknown), "other");
        }
    }
}
