//! The system clock, read only here, and the clock of a store.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use noetl_model::{Clock, Timestamp};

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the clock seam's real side")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Clock of a store. Leases and timers are compared with this clock, never with a caller's. The
/// system clock, unless a test supplies one.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Clock>);

impl StoreClock {
    /// Creates the clock of a store from another one.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }

    pub fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Default for StoreClock {
    fn default() -> Self {
        Self(Arc::new(SystemClock))
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreClock")
    }
}
