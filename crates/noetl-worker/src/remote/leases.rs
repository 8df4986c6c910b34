//! Commands that this worker leases.

use std::collections::HashMap;
use std::collections::hash_map::Entry as HashEntry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noetl_model::CommandId;
use tokio_util::sync::CancellationToken;

/// Commands that a worker leases. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(crate) struct HeldLeases(Arc<Mutex<HashMap<CommandId, LeaseEntry>>>);

struct LeaseEntry {
    cancel: CancellationToken,
    /// Cancelled when another worker owns the command.
    lost: CancellationToken,
    /// Whether the command's completion is in flight. Its response tells the outcome. A heartbeat
    /// response that reports the lease as lost may then only mean that the server accepted the
    /// completion.
    is_reported: bool,
}

/// Lease of one command. Dropping it removes the command from the heartbeats.
pub(crate) struct HeldLease {
    leases: HeldLeases,
    command: CommandId,
    /// Cancelled when another worker owns the command.
    pub(crate) lost: CancellationToken,
}

impl HeldLease {
    /// Records that the command's completion is in flight.
    pub(crate) fn reports(&self) {
        if let Some(entry) = self.leases.lock().get_mut(&self.command) {
            entry.is_reported = true;
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.leases.lock().remove(&self.command);
    }
}

impl HeldLeases {
    /// Adds a leased command whose tools stop by this token. Returns `None` if it is already
    /// leased.
    pub(crate) fn hold(&self, command: CommandId, cancel: CancellationToken) -> Option<HeldLease> {
        let lost = CancellationToken::new();
        match self.lock().entry(command) {
            HashEntry::Occupied(_) => return None,
            HashEntry::Vacant(place) => {
                place.insert(LeaseEntry { cancel, lost: lost.clone(), is_reported: false })
            }
        };
        Some(HeldLease { leases: self.clone(), command, lost })
    }

    pub(crate) fn commands(&self) -> Vec<CommandId> {
        self.lock().keys().copied().collect()
    }

    /// Returns the number of leased commands.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Stops the tools of a command. Its completion must still be reported.
    pub(crate) fn cancel(&self, command: CommandId) {
        if let Some(entry) = self.lock().get(&command) {
            entry.cancel.cancel();
        }
    }

    /// Records that another worker owns a command. Returns `true` if this worker leased it until
    /// now and is not reporting it.
    pub(crate) fn mark_lost(&self, command: CommandId) -> bool {
        let leases = self.lock();
        let entry = leases.get(&command).filter(|entry| !entry.is_reported);
        let Some(entry) = entry.filter(|entry| !entry.lost.is_cancelled()) else { return false };
        entry.cancel.cancel();
        entry.lost.cancel();
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CommandId, LeaseEntry>> {
        // No critical section can panic halfway, so a poisoned lock still guards consistent data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_a_lost_lease_is_stopped_once_unless_its_report_is_in_flight() {
        let leases = HeldLeases::default();
        let (one, two) = (CommandId::new(1), CommandId::new(2));
        let stop = CancellationToken::new();
        let first = leases.hold(one, stop.clone()).unwrap();
        let second = leases.hold(two, CancellationToken::new()).unwrap();
        assert!(leases.hold(one, CancellationToken::new()).is_none(), "it is held");
        assert!(leases.mark_lost(one) && stop.is_cancelled() && first.lost.is_cancelled());
        assert!(!leases.mark_lost(one));
        second.reports();
        assert!(!leases.mark_lost(two) && !second.lost.is_cancelled());
        drop(first);
        assert_eq!(leases.commands(), [two]);
        assert!(!leases.mark_lost(one));
    }
}
