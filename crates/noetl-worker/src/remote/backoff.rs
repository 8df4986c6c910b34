//! Delays between retries, which double up to a maximum.

use std::time::Duration;

/// Delays that double up to a maximum.
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

/// Delay after the first failure.
const FIRST: Duration = Duration::from_millis(100);

const LONGEST: Duration = Duration::from_secs(5);

impl Default for Backoff {
    fn default() -> Self {
        Self::up_to(LONGEST)
    }
}

impl Backoff {
    /// Creates a backoff with this maximum delay.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self { next: FIRST.min(longest), longest }
    }

    /// Restarts at the first delay.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST.min(self.longest);
    }

    /// Sleeps for the current delay and doubles the next one.
    pub(crate) async fn pause(&mut self) {
        let pause = self.next;
        self.next = (self.next * 2).min(self.longest);
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_maximum_and_can_be_reset() {
        let mut backoff = Backoff::up_to(Duration::from_millis(350));
        let began = Instant::now();
        for expected in [100, 300, 650, 1000] {
            backoff.pause().await;
            assert_eq!(began.elapsed().as_millis(), expected);
        }
        backoff.reset();
        backoff.pause().await;
        assert_eq!(began.elapsed().as_millis(), 1100);
    }
}
