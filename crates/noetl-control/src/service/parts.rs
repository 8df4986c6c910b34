//! What a control plane answers by itself, and what other services take from it.

use noetl_model::Timestamp;
use noetl_store::Policy;

use super::Control;
use crate::announcing::Announcements;
use crate::retention::{PurgeError, Purged};

impl Control {
    pub(crate) fn announcements(&self) -> &Announcements {
        self.dispatch.announcements()
    }

    /// Removes what a policy lets go, and says what went and what stayed. A dry run changes nothing.
    pub async fn purge(&self, policy: &Policy, dry_run: bool) -> Result<Purged, PurgeError> {
        crate::retention::purge(&*self.store, &*self.blobs, policy, dry_run).await
    }

    /// The time, by the clock that new events get.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many appends met one of another process first, and were decided again.
    pub fn conflicts(&self) -> u64 {
        self.metrics.conflicts.get()
    }
}
