//! A clock that only a test moves.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use noetl_model::{Clock, Timestamp};

/// A clock that stands still until it is moved, so that stores that share it agree on every time.
#[derive(Debug)]
pub struct HandClock(AtomicI64);

impl HandClock {
    /// Moves the clock forward by a duration.
    pub fn pass(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).expect("a short time");
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Default for HandClock {
    /// Returns a clock at an instant that cannot be mistaken for a default.
    fn default() -> Self {
        Self(AtomicI64::new(1_767_225_600_000_000))
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
