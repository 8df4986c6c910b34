//! A clock that moves only when a test advances it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::{Clock, Timestamp};

/// A clock that stands still between calls of [`advance`](Self::advance) and never goes back.
#[derive(Debug)]
pub struct SimClock {
    micros: AtomicI64,
}

impl SimClock {
    /// Creates a clock that shows `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { micros: AtomicI64::new(start.as_micros()) }
    }

    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.micros.fetch_add(by, Ordering::SeqCst);
    }
}

impl Default for SimClock {
    /// Starts at 2026-01-01T00:00:00Z: late enough for every ID layout, and easy to read in a
    /// snapshot.
    fn default() -> Self {
        Self::starting_at(Timestamp::from_millis(1_767_225_600_000))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_advances_only_when_requested() {
        let clock = SimClock::default();
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:01.5Z");
    }
}
