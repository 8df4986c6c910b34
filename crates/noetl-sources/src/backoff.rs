//! Backoff between attempts: 250 ms, doubling up to 10 seconds.

use std::time::Duration;

/// Returns the backoff after this many consecutive failures: 250 ms after the first, doubling up to
/// 10 seconds.
pub(crate) fn pause(failures: u32) -> Duration {
    Duration::from_millis((125_u64 << failures.min(7)).min(10_000))
}
