//! Limits a listener's messages in this process by concurrency and by rate.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use noetl_model::{SubscriptionId, Timestamp};

use noetl_catalog::TokenBucket;

/// Maximum number of subscriptions tracked. The least recently used ones are evicted and start
/// over.
const COUNTED_MAX: usize = 4096;

/// Minimum interval between `subscription.rate_limited` events of a subscription.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Counters by subscription. Cheap to clone.
#[derive(Clone)]
pub(super) struct MessageLimiter(Arc<Mutex<LruCache<SubscriptionId, Arc<Mutex<Count>>>>>);

#[derive(Debug, Default)]
struct Count {
    in_flight: u64,
    bucket: TokenBucket,
    told: Option<Timestamp>,
}

/// Permit to process one message. Dropping it releases the permit.
#[derive(Debug)]
pub(super) struct MessagePermit(Arc<Mutex<Count>>);

/// The message exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitExceeded {
    /// Key of the limit in the document.
    pub(super) limit: &'static str,
    /// Whether to record the rejection in the subscription's event log now.
    pub(super) is_to_be_told: bool,
}

impl Drop for MessagePermit {
    fn drop(&mut self) {
        lock(&self.0).in_flight -= 1;
    }
}

impl Default for MessageLimiter {
    fn default() -> Self {
        let most = NonZeroUsize::new(COUNTED_MAX).expect("more than none");
        Self(Arc::new(Mutex::new(LruCache::new(most))))
    }
}

impl MessageLimiter {
    /// Acquires a permit for one more message. The rate bucket holds one second's worth of
    /// messages, and at least one.
    pub(super) fn acquire(
        &self,
        of: SubscriptionId,
        most: Option<u64>,
        per_sec: Option<f64>,
        now: Timestamp,
    ) -> Result<MessagePermit, LimitExceeded> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = { known }.get_or_insert(of, Arc::default).clone();
        let mut held = lock(&count);
        let is_room = most.is_none_or(|most| held.in_flight < most);
        if is_room && per_sec.is_none_or(|rate| held.bucket.take(rate, now).is_ok()) {
            held.in_flight += 1;
            drop(held);
            return Ok(MessagePermit(count));
        }
        let is_to_be_told = held.told.is_none_or(|told| now.since(told) >= TOLD_EVERY);
        if is_to_be_told {
            held.told = Some(now);
        }
        let limit = if is_room { "max_dispatch_per_sec" } else { "max_in_flight" };
        Err(LimitExceeded { limit, is_to_be_told })
    }
}

fn lock(count: &Mutex<Count>) -> std::sync::MutexGuard<'_, Count> {
    // Numbers are written whole, so a poisoned lock still guards valid ones.
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SubscriptionId = SubscriptionId::new(1);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn so_many_at_a_time_and_the_next_when_one_is_through() {
        let limits = MessageLimiter::default();
        let enter = || limits.acquire(ONE, Some(2), None, at(0));
        let (first, _second) = (enter().expect("a place"), enter().expect("a place"));
        let exceeded = |is_to_be_told| LimitExceeded { limit: "max_in_flight", is_to_be_told };
        assert_eq!(enter().expect_err("full"), exceeded(true));
        assert_eq!(enter().expect_err("full"), exceeded(false));
        assert!(limits.acquire(SubscriptionId::new(2), Some(1), None, at(0)).is_ok(), "another's");
        drop(first);
        assert!(enter().is_ok());
    }

    #[test]
    fn so_many_a_second_and_no_more_after_a_rest() {
        let limits = MessageLimiter::default();
        let enter = |millis| limits.acquire(ONE, None, Some(2.0), at(millis));
        let take = |millis| enter(millis).is_ok();
        assert_eq!([take(0), take(0), take(0)], [true, true, false]);
        assert_eq!(enter(0).expect_err("full").limit, "max_dispatch_per_sec");
        assert_eq!([take(400), take(500), take(500)], [false, true, false]);
        // An hour of rest is worth one second's messages.
        let hour = 3_600_000;
        assert_eq!([take(hour), take(hour), take(hour)], [true, true, false]);
        // A clock that goes back gives nothing away.
        assert!(!take(0) && !take(hour + 400) && take(hour + 500));
    }

    #[test]
    fn a_rate_below_one_lets_the_first_through() {
        let limits = MessageLimiter::default();
        let take = |seconds: i64| limits.acquire(ONE, None, Some(0.1), at(seconds * 1000)).is_ok();
        assert_eq!([take(0), take(9), take(10), take(11)], [true, false, true, false]);
    }
}
