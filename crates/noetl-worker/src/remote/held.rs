//! The commands a worker holds.

use std::collections::HashMap;
use std::collections::hash_map::Entry as HashEntry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::CommandId;
use tokio_util::sync::CancellationToken;

/// The commands a worker holds. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<HashMap<CommandId, Entry>>>);

struct Entry {
    /// Tells its tools to stop.
    cancel: CancellationToken,
    /// Fires when it is somebody else's.
    lost: CancellationToken,
    /// Whether its report is on its way. The answer to that says what became of it; that the command
    /// is not held any more may mean no more than that the report was taken.
    is_reported: bool,
}

/// Holds one command until it is dropped.
pub(crate) struct Holding {
    held: Held,
    command: CommandId,
    /// Fires when the command is somebody else's.
    pub(crate) lost: CancellationToken,
}

impl Holding {
    /// Notes that the report of the command is on its way.
    pub(crate) fn reports(&self) {
        if let Some(entry) = self.held.lock().get_mut(&self.command) {
            entry.is_reported = true;
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held.lock().remove(&self.command);
    }
}

impl Held {
    /// Holds a command whose tools stop by this token; `None` when it is held already.
    pub(crate) fn hold(&self, command: CommandId, cancel: CancellationToken) -> Option<Holding> {
        let lost = CancellationToken::new();
        match self.lock().entry(command) {
            HashEntry::Occupied(_) => return None,
            HashEntry::Vacant(place) => {
                place.insert(Entry { cancel, lost: lost.clone(), is_reported: false })
            }
        };
        Some(Holding { held: self.clone(), command, lost })
    }

    pub(crate) fn commands(&self) -> Vec<CommandId> {
        self.lock().keys().copied().collect()
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Tells the tools of a command to stop; it is still to be reported.
    pub(crate) fn cancel(&self, command: CommandId) {
        if let Some(entry) = self.lock().get(&command) {
            entry.cancel.cancel();
        }
    }

    /// Notes that a command is somebody else's. Whether it was held until now.
    pub(crate) fn lose(&self, command: CommandId) -> bool {
        let held = self.lock();
        let entry = held.get(&command).filter(|entry| !entry.is_reported);
        let Some(entry) = entry.filter(|entry| !entry.lost.is_cancelled()) else { return false };
        entry.cancel.cancel();
        entry.lost.cancel();
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CommandId, Entry>> {
        // Every critical section is a few calls that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_stopped_once_unless_its_report_is_on_its_way() {
        let held = Held::default();
        let (one, two) = (CommandId::new(1), CommandId::new(2));
        let stop = CancellationToken::new();
        let first = held.hold(one, stop.clone()).unwrap();
        let second = held.hold(two, CancellationToken::new()).unwrap();
        assert!(held.hold(one, CancellationToken::new()).is_none(), "it is held");
        assert!(held.lose(one) && stop.is_cancelled() && first.lost.is_cancelled());
        assert!(!held.lose(one));
        second.reports();
        assert!(!held.lose(two) && !second.lost.is_cancelled());
        drop(first);
        assert_eq!(held.commands(), [two]);
        assert!(!held.lose(one));
    }
}
