//! A lease that the tailer renews.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use noetl_store::{Lease, PublishingStore, StoreError};
use tokio::time::Instant;
use tracing::warn;

/// A lease, with the time at which this process's clock last confirmed it.
pub(super) struct TailerLease {
    pub(super) lease: Lease,
    ttl: Duration,
    known_at: Mutex<Instant>,
}

impl TailerLease {
    /// Acquires the lease, if no other process holds it.
    pub(super) async fn take(
        store: &dyn PublishingStore,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let asked_at = Instant::now();
        let lease = store.acquire(name, holder, ttl).await?;
        Ok(lease.map(|lease| Self { lease, ttl, known_at: Mutex::new(asked_at) }))
    }

    /// Returns `true` if this process certainly holds the lease now. A process that was suspended
    /// is not certain until the next renewal.
    pub(super) fn is_valid(&self) -> bool {
        self.known_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < self.ttl
    }

    /// Renews the lease periodically, and returns when another process holds it or may hold it.
    pub(super) async fn wait_lost(&self, store: &dyn PublishingStore) {
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            let asked_at = Instant::now();
            match store.renew(&self.lease, self.ttl).await {
                Ok(true) => {
                    *self.known_at.lock().unwrap_or_else(PoisonError::into_inner) = asked_at;
                }
                Ok(false) => return,
                Err(error) => {
                    warn!(%error, "failed to renew tailer lease");
                    if !self.is_valid() {
                        return;
                    }
                }
            }
        }
    }

    /// Releases the lease, so another process can acquire it at once.
    pub(super) async fn release(self, store: &dyn PublishingStore) -> Result<(), StoreError> {
        store.release(&self.lease).await.map(drop)
    }
}
