//! The outbox, for external publishers.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::ExponentialBackoff;
use noetl_store::{OutboxRow, PublishingStore, StoreError};

/// Maximum number of rows per claim.
const CLAIM_MAX: i64 = 1000;

/// Maximum retry delay, in seconds, whatever the caller allows.
const DELAY_MAX: u64 = 256;

/// Claims and settles outbox rows. Cheap to clone.
#[derive(Clone)]
pub struct OutboxService {
    store: Arc<dyn PublishingStore>,
}

impl OutboxService {
    pub(crate) fn new(store: Arc<dyn PublishingStore>) -> Self {
        Self { store }
    }

    /// Claims rows for a publisher. `limit` is clamped to the range 1 to 1000.
    pub async fn claim(&self, limit: i64) -> Result<Vec<OutboxRow>, StoreError> {
        let limit = usize::try_from(limit.clamp(1, CLAIM_MAX)).unwrap_or(1);
        self.store.claim(limit).await
    }

    /// Marks rows as published. Returns how many were not marked before.
    pub async fn published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        self.store.mark_published(ids).await
    }

    /// Records that the given attempt to publish failed. Returns whether the row was rescheduled,
    /// and the delay.
    pub async fn failed(
        &self,
        id: i64,
        error: &str,
        attempts: i32,
        delay_max: i32,
    ) -> Result<(bool, Duration), StoreError> {
        let delay = delay(attempts, delay_max);
        let marked = self.store.mark_failed(id, error, delay).await?;
        Ok((marked, delay))
    }

    /// Returns the number of rows that can be claimed.
    pub async fn pending(&self) -> Result<u64, StoreError> {
        self.store.pending().await
    }
}

/// Returns the retry delay after this number of attempts: doubling, at most `most` seconds, and at
/// least one.
pub(crate) fn delay(attempts: i32, most: i32) -> Duration {
    let most = u64::try_from(most.max(1)).unwrap_or(1).min(DELAY_MAX);
    let backoff = ExponentialBackoff::new(Duration::from_secs(1), Duration::from_secs(most));
    backoff.delay(u32::try_from(attempts).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_bound() {
        for (attempts, most, seconds) in [
            (0, 300, 1),
            (1, 300, 1),
            (2, 300, 2),
            (5, 300, 16),
            (9, 300, 256),
            (20, 300, 256),
            (5, 10, 10),
            (5, -5, 1),
            (5, 0, 1),
            (i32::MIN, i32::MAX, 1),
            (i32::MAX, i32::MAX, 256),
        ] {
            assert_eq!(delay(attempts, most).as_secs(), seconds, "{attempts} {most}");
        }
    }
}
