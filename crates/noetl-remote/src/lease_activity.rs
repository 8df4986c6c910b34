//! Tracks whether remote workers may hold leases, as far as this process can see.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum duration of a lease that a worker may choose.
pub const LEASE_MAX: Duration = Duration::from_secs(300);

/// Time after the last observed lease activity during which leases may still exist. No lease lasts
/// longer than [`LEASE_MAX`] without activity. Activity reaches this process, or another one,
/// which then scans for expired leases itself.
const SEEN_FOR: Duration = LEASE_MAX.saturating_mul(2);

/// Time of the last lease granted or renewed by this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaseActivity(Arc<watch::Sender<Option<Instant>>>);

impl Default for LeaseActivity {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl LeaseActivity {
    /// Records that a lease exists now.
    pub(crate) fn record(&self) {
        self.0.send_replace(Some(Instant::now()));
    }

    /// Returns `true` if leases may exist.
    pub(crate) fn may_have_leases(&self) -> bool {
        self.0.borrow().is_some_and(|at| at.elapsed() < SEEN_FOR)
    }

    /// Subscribes to lease activity, so the reaper leaves its idle interval when a lease is
    /// granted.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        self.0.subscribe()
    }
}
