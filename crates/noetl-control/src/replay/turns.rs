//! Who may fold now: what all folds at once have in memory has to fit.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Folds of more events than this wait for each other, because their states may be large too.
const LONG: u64 = 100_000;
const LONG_AT_ONCE: usize = 2;

/// All folds wait when so many are under way: each has two pages.
const AT_ONCE: usize = 8;

/// Where folds wait for their turn.
pub(super) struct Turns {
    any: Semaphore,
    long: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self { any: Semaphore::new(AT_ONCE), long: Semaphore::new(LONG_AT_ONCE) }
    }
}

/// A turn, until it is dropped.
pub(super) struct Turn<'a> {
    _any: Option<SemaphorePermit<'a>>,
    _long: Option<SemaphorePermit<'a>>,
}

impl Turns {
    /// Waits until a fold of up to so many events may begin. Long ones wait for each other first,
    /// so that while they do they keep no short one from its turn.
    pub(super) async fn take(&self, limit: Option<u64>) -> Turn<'_> {
        // Neither semaphore is ever closed.
        let long = match limit {
            Some(limit) if limit <= LONG => None,
            _ => self.long.acquire().await.ok(),
        };
        Turn { _any: self.any.acquire().await.ok(), _long: long }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn short_folds_wait_when_many_are_under_way() {
        let turns = Turns::default();
        let take = || turns.take(Some(LONG)).now_or_never();
        let mut taken: Vec<_> = (0..AT_ONCE).map(|_| take().expect("a turn")).collect();
        assert!(take().is_none());
        taken.pop();
        assert!(take().is_some());
    }

    #[test]
    fn long_folds_wait_for_each_other_and_leave_room_for_short_ones() {
        let turns = Turns::default();
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
