//! The one place that reads the machine's clock, and the clock a store keeps.

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

/// A store's own clock: leases and times that fall due are compared with this one, never with a
/// caller's. The machine's, unless a test has one it moves.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Clock>);

impl StoreClock {
    /// A store that goes by this clock.
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
