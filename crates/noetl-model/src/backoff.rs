//! Delays between retries.

use std::time::Duration;

/// Delays that double with each consecutive failure, up to a maximum.
///
/// Computes delays only: the caller sleeps, and stops when it is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExponentialBackoff {
    first: Duration,
    longest: Duration,
}

impl ExponentialBackoff {
    /// Creates a backoff with the delay after the first failure and the maximum delay, which limits
    /// the first one too.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// Returns the delay after this number of consecutive failures. 0 counts as 1.
    pub fn delay(self, failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// Returns the delays of a loop that doesn't count its failures.
    pub const fn delays(self) -> RetryDelays {
        RetryDelays { backoff: self, failures: 0 }
    }
}

/// Consecutive delays of an [`ExponentialBackoff`].
#[derive(Debug, Clone)]
pub struct RetryDelays {
    backoff: ExponentialBackoff,
    failures: u32,
}

impl RetryDelays {
    /// Counts a failure and returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures)
    }

    /// Restarts at the first delay, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(first: u64, longest: u64) -> ExponentialBackoff {
        ExponentialBackoff::new(Duration::from_millis(first), Duration::from_millis(longest))
    }

    #[test]
    fn delays_double_up_to_the_maximum_and_restart_after_a_reset() {
        let mut delays = backoff(100, 350).delays();
        for expected in [100, 200, 350, 350] {
            assert_eq!(delays.next_delay().as_millis(), expected);
        }
        delays.reset();
        assert_eq!(delays.next_delay().as_millis(), 100);
    }

    #[test]
    fn a_delay_follows_from_the_number_of_failures() {
        let backoff = backoff(250, 10_000);
        for (failures, expected) in [
            (0, 250),
            (1, 250),
            (2, 500),
            (6, 8_000),
            (7, 10_000),
            (33, 10_000),
            (u32::MAX, 10_000),
        ] {
            assert_eq!(backoff.delay(failures).as_millis(), expected, "{failures}");
        }
    }

    #[test]
    fn the_maximum_limits_the_first_delay_and_huge_ones() {
        assert_eq!(backoff(100, 40).delay(1).as_millis(), 40);
        assert_eq!(backoff(0, 40).delay(u32::MAX), Duration::ZERO);
        let endless = ExponentialBackoff::new(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(endless.delay(u32::MAX), Duration::MAX);
    }
}
