//! Accessors of a control plane.

use noetl_model::Timestamp;
use noetl_store::RetentionPolicy;

use super::ControlPlane;
use crate::announcements::AnnouncementQueue;
use crate::retention::{PurgeError, Purged};

impl ControlPlane {
    pub(crate) fn announcements(&self) -> &AnnouncementQueue {
        self.dispatch.announcements()
    }

    /// Deletes the data that a policy does not retain, and reports it. A dry run deletes nothing.
    pub async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<Purged, PurgeError> {
        crate::retention::purge(&*self.store, &*self.blobs, policy, dry_run).await
    }

    /// Returns the current time, by the clock that timestamps events.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the number of appends that conflicted with another process and were decided again.
    pub fn conflicts(&self) -> u64 {
        self.metrics.conflicts.get()
    }
}
