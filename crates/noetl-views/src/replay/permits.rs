//! Limits concurrent folds, so that their memory fits.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Number of events above which a fold counts as long. Long folds have a lower limit, because their
/// states may be large too.
const LONG: u64 = 100_000;
const LONG_AT_ONCE: usize = 2;

/// Maximum number of concurrent folds. Each has two pages in memory.
const AT_ONCE: usize = 8;

/// Semaphores on which folds wait.
pub(super) struct FoldLimiter {
    any: Semaphore,
    long: Semaphore,
}

impl Default for FoldLimiter {
    fn default() -> Self {
        Self { any: Semaphore::new(AT_ONCE), long: Semaphore::new(LONG_AT_ONCE) }
    }
}

/// Permit for one fold. Dropping it releases the permit.
pub(super) struct FoldPermit<'a> {
    _any: Option<SemaphorePermit<'a>>,
    _long: Option<SemaphorePermit<'a>>,
}

impl FoldLimiter {
    /// Waits for a permit to fold up to `limit` events. Long folds wait for their own semaphore
    /// first, so they do not occupy a general permit meanwhile.
    pub(super) async fn take(&self, limit: Option<u64>) -> FoldPermit<'_> {
        // Neither semaphore is ever closed.
        let long = match limit {
            Some(limit) if limit <= LONG => None,
            _ => self.long.acquire().await.ok(),
        };
        FoldPermit { _any: self.any.acquire().await.ok(), _long: long }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn short_folds_wait_when_many_are_running() {
        let turns = FoldLimiter::default();
        let take = || turns.take(Some(LONG)).now_or_never();
        let mut taken: Vec<_> = (0..AT_ONCE).map(|_| take().expect("a turn")).collect();
        assert!(take().is_none());
        taken.pop();
        assert!(take().is_some());
    }

    #[test]
    fn long_folds_wait_for_each_other_and_leave_room_for_short_ones() {
        let turns = FoldLimiter::default();
        let taken: Vec<_> =
            (0..LONG_AT_ONCE).map(|_| turns.take(None).now_or_never().expect("a turn")).collect();
        let mut waiting = Box::pin(turns.take(Some(LONG + 1)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let short: Vec<_> = (LONG_AT_ONCE..AT_ONCE)
            .map(|_| turns.take(Some(1)).now_or_never().expect("a turn"))
            .collect();
        drop(short);
        drop(taken);
        assert!(waiting.now_or_never().is_some());
    }
}
