//! Token-bucket rate limits by key.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use noetl_model::Timestamp;

/// Maximum number of keys tracked. The least recently used ones are evicted and start with a full
/// bucket.
const COUNTED_MAX: usize = 4096;

/// Available tokens, and the time they were counted. The bucket holds one second's worth, and at
/// least one.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenBucket(Option<(f64, Timestamp)>);

impl TokenBucket {
    /// Removes a token, or returns the time until one is available.
    pub fn take(&mut self, per_sec: f64, now: Timestamp) -> Result<(), Duration> {
        let room = per_sec.max(1.0);
        let (left, since) = self.0.unwrap_or((room, now));
        let left = (left + per_sec * now.since(since).as_secs_f64()).min(room);
        let is_one = left >= 1.0;
        self.0 = Some((if is_one { left - 1.0 } else { left }, now.max(since)));
        match is_one {
            true => Ok(()),
            false => Err(Duration::try_from_secs_f64((1.0 - left) / per_sec).unwrap_or_default()),
        }
    }
}

#[derive(Debug)]
pub struct RateLimiter<K: Hash + Eq>(Mutex<LruCache<K, TokenBucket>>);

impl<K: Hash + Eq> Default for RateLimiter<K> {
    fn default() -> Self {
        let most = NonZeroUsize::new(COUNTED_MAX).expect("more than none");
        Self(Mutex::new(LruCache::new(most)))
    }
}

impl<K: Hash + Eq> RateLimiter<K> {
    /// Removes a token from this key's bucket, or returns the time until one is available.
    pub fn take(&self, key: K, per_sec: f64, now: Timestamp) -> Result<(), Duration> {
        // Numbers are written whole, so a poisoned lock still guards valid ones.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_mut(key, TokenBucket::default).take(per_sec, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_over_the_rate_are_told_when_to_retry() {
        let rates = RateLimiter::default();
        let at = Timestamp::from_millis;
        assert_eq!(rates.take("a", 2.0, at(0)), Ok(()));
        assert_eq!(rates.take("a", 2.0, at(0)), Ok(()));
        assert_eq!(rates.take("a", 2.0, at(0)), Err(Duration::from_millis(500)));
        assert_eq!(rates.take("b", 2.0, at(0)), Ok(()), "another's");
        assert_eq!(rates.take("a", 2.0, at(500)), Ok(()));
        assert_eq!(rates.take("c", 0.1, at(0)), Ok(()));
        assert_eq!(rates.take("c", 0.1, at(0)), Err(Duration::from_secs(10)));
    }
}
