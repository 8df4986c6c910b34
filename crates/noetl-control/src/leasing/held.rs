//! Whether workers elsewhere hold anything, as far as this process has seen.

use std::sync::Arc;
use std::time::Duration;

use noetl_store::holdings::SILENCE_MAX;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long after the last sign of one a lease may still be there: none lasts longer than a worker may
/// be silent without a sign that this process sees, or another one does and looks for itself.
const SEEN_FOR: Duration = SILENCE_MAX.saturating_mul(2);

/// When a lease was last given or renewed here. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Held(Arc<watch::Sender<Option<Instant>>>);

impl Default for Held {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Held {
    /// Notes that there is a lease now.
    pub(crate) fn seen(&self) {
        self.0.send_replace(Some(Instant::now()));
    }

    /// Whether there may be leases.
    pub(crate) fn is_likely(&self) -> bool {
        self.0.borrow().is_some_and(|at| at.elapsed() < SEEN_FOR)
    }

    /// Tells whoever thinks that there is none when there is one.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        self.0.subscribe()
    }
}
