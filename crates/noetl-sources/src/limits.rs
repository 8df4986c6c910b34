//! Rate limiter: a token bucket.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket with a capacity of one second's tokens, at least one, so that short bursts pass.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: f64,
    most: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// Creates a full bucket that gains `rate` tokens per second.
    pub(crate) fn new(rate: f64, now: Instant) -> Self {
        let most = rate.max(1.0);
        Self { rate, most, tokens: most, at: now }
    }

    /// Takes up to `wanted` tokens and returns the number taken.
    pub(crate) fn take(&mut self, wanted: usize, now: Instant) -> usize {
        self.fill(now);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole tokens of a bucket that never holds less than none"
        )]
        let there = self.tokens as usize;
        let granted = there.min(wanted);
        #[allow(clippy::cast_precision_loss, reason = "far fewer than a float can count")]
        let spent = granted as f64;
        self.tokens -= spent;
        granted
    }

    /// Returns unused tokens to the bucket.
    pub(crate) fn put_back(&mut self, unused: usize) {
        #[allow(clippy::cast_precision_loss, reason = "far fewer than a float can count")]
        let unused = unused as f64;
        self.tokens = (self.tokens + unused).min(self.most);
    }

    /// Returns the time until a whole token is available.
    pub(crate) fn next_in(&self) -> Duration {
        let missing = (1.0 - self.tokens).max(0.0);
        Duration::try_from_secs_f64(missing / self.rate).unwrap_or(Duration::from_secs(60))
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(self.most);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_are_limited_to_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, start);
        assert_eq!(bucket.take(100, start), 10, "a burst of one second");
        assert_eq!(bucket.take(100, start), 0);
        assert_eq!(bucket.next_in(), Duration::from_millis(100));
        assert_eq!(bucket.take(100, start + Duration::from_millis(550)), 5);
        let mut total = 0;
        for tenth in 6..=100 {
            total += bucket.take(100, start + Duration::from_millis(tenth * 100));
        }
        assert_eq!(total, 95, "one each tenth of a second");
        assert_eq!(bucket.take(100, start + Duration::from_secs(3600)), 10, "it does not overflow");
    }

    #[test]
    fn unused_permits_are_returned() {
        let start = Instant::now();
        let mut bucket = Bucket::new(3.0, start);
        assert_eq!(bucket.take(3, start), 3);
        bucket.put_back(2);
        assert_eq!(bucket.take(3, start), 2);
        bucket.put_back(100);
        assert_eq!(bucket.take(100, start), 3);
    }

    #[test]
    fn rates_below_one_per_second_are_supported() {
        let start = Instant::now();
        let mut bucket = Bucket::new(0.5, start);
        assert_eq!(bucket.take(1, start), 1);
        assert_eq!(bucket.take(1, start + Duration::from_secs(1)), 0);
        assert_eq!(bucket.take(1, start + Duration::from_secs(2)), 1);
    }
}
