//! A lease that is kept.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use noetl_store::{Lease, Store, StoreError};
use tokio::time::Instant;
use tracing::warn;

/// A lease, with when it was last known to be ours by this process's own clock.
pub(super) struct Held {
    pub(super) lease: Lease,
    ttl: Duration,
    known_at: Mutex<Instant>,
}

impl Held {
    /// Takes a name, if nobody else has it.
    pub(super) async fn take(
        store: &dyn Store,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let asked_at = Instant::now();
        let lease = store.acquire(name, holder, ttl).await?;
        Ok(lease.map(|lease| Self { lease, ttl, known_at: Mutex::new(asked_at) }))
    }

    /// Whether it is certainly ours at this moment. A process that stood still for a while is not
    /// certain before it has asked again.
    pub(super) fn is_certain(&self) -> bool {
        self.known_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < self.ttl
    }

    /// Renews it again and again, and returns when it is another's or may be.
    pub(super) async fn lost(&self, store: &dyn Store) {
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            let asked_at = Instant::now();
            match store.renew(&self.lease, self.ttl).await {
                Ok(true) => {
                    *self.known_at.lock().unwrap_or_else(PoisonError::into_inner) = asked_at;
                }
                Ok(false) => return,
                Err(error) => {
                    warn!(%error, "the lease of the event log was not renewed");
                    if !self.is_certain() {
                        return;
                    }
                }
            }
        }
    }

    /// Gives it back.
    pub(super) async fn release(self, store: &dyn Store) -> Result<(), StoreError> {
        store.release(&self.lease).await.map(drop)
    }
}
