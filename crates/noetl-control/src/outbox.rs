//! The outbox as publishers outside see it.

use std::sync::Arc;
use std::time::Duration;

use noetl_store::{OutboxRow, Store, StoreError};

/// The most rows one claim takes.
const CLAIM_MAX: i64 = 1000;

/// The delay doubles with every try up to this power of two: 256 seconds.
const DOUBLINGS_MAX: i32 = 8;

/// The outbox service. Cheap to clone.
#[derive(Clone)]
pub struct Outgoing {
    store: Arc<dyn Store>,
}

impl Outgoing {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Claims rows for a publisher: 1 to 1000, and the nearer of them when `limit` is outside.
    pub async fn claim(&self, limit: i64) -> Result<Vec<OutboxRow>, StoreError> {
        let limit = usize::try_from(limit.clamp(1, CLAIM_MAX)).unwrap_or(1);
        self.store.claim(limit).await
    }

    /// Says that rows are published. How many were not before.
    pub async fn published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        self.store.mark_published(ids).await
    }

    /// Says that publishing failed for the time given. Whether that row waits now, and for how
    /// long.
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

    /// How many rows could be claimed.
    pub async fn pending(&self) -> Result<u64, StoreError> {
        self.store.pending().await
    }
}

/// How long a row waits that failed so many times: longer every time, at most `most` seconds, and
/// never less than one.
pub fn delay(attempts: i32, most: i32) -> Duration {
    let doublings = attempts.saturating_sub(1).clamp(0, DOUBLINGS_MAX);
    let most = u64::try_from(most.max(1)).unwrap_or(1);
    Duration::from_secs((1_u64 << doublings).min(most))
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
