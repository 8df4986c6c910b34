//! Retention windows: unlimited, or a bounded number of days.

use std::time::Duration;

use noetl_model::Timestamp;

/// Maximum window in days: longer than any retention rule requires, and short enough that its start
/// is always after 1970.
pub const DAYS_MAX: i64 = 10_000;

const MINUTES_PER_DAY: i64 = 24 * 60;
const SECONDS_PER_MINUTE: u64 = 60;

/// A retention window: unlimited, or a bounded duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionWindow(Option<Duration>);

/// A number outside the range of a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is a number up to {most}, not {found}")]
pub struct OutOfRange {
    pub setting: &'static str,
    /// Largest number that is accepted.
    pub most: i64,
    pub found: i64,
}

impl RetentionWindow {
    /// Unlimited window: rows stay forever.
    pub const KEEP: Self = Self(None);

    /// Creates a window of this many days; unlimited if zero or less.
    pub fn days(setting: &'static str, days: i64) -> Result<Self, OutOfRange> {
        let most = DAYS_MAX;
        if days > most {
            return Err(OutOfRange { setting, most, found: days });
        }
        Ok(Self::of_days(days.max(0)))
    }

    /// Creates a window of this many minutes; unlimited if zero or less.
    pub fn minutes(setting: &'static str, minutes: i64) -> Result<Self, OutOfRange> {
        let most = DAYS_MAX * MINUTES_PER_DAY;
        if minutes > most {
            return Err(OutOfRange { setting, most, found: minutes });
        }
        Ok(Self::of_minutes(minutes))
    }

    pub(super) fn of_days(days: i64) -> Self {
        Self::of_minutes(days * MINUTES_PER_DAY)
    }

    pub(super) fn of_minutes(minutes: i64) -> Self {
        let minutes = u64::try_from(minutes).ok().filter(|minutes| *minutes > 0);
        Self(minutes.map(|minutes| Duration::from_secs(minutes * SECONDS_PER_MINUTE)))
    }

    /// Returns the start of the window, seen from `now`: rows last in use at or before it are
    /// removed. Returns `None` if the window is unlimited.
    pub fn since(self, now: Timestamp) -> Option<Timestamp> {
        self.0.map(|window| now.minus(window))
    }

    /// Returns the length of the window, or `None` if it is unlimited.
    pub fn length(self) -> Option<Duration> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_less_keep_for_good() {
        for number in [0, -1, i64::MIN] {
            assert_eq!(
                RetentionWindow::minutes("m", number),
                Ok(RetentionWindow::KEEP),
                "{number}"
            );
            assert_eq!(RetentionWindow::days("d", number), Ok(RetentionWindow::KEEP), "{number}");
        }
    }

    #[test]
    fn a_number_past_the_largest_is_refused_and_named() {
        for days in [DAYS_MAX + 1, 30_000, 4_294_967_295, i64::MAX] {
            let refused =
                RetentionWindow::days("event_retention_days", days).expect_err("too large");
            assert_eq!(refused.found, days);
            assert!(refused.to_string().starts_with("event_retention_days is a number up to"));
        }
        for minutes in [DAYS_MAX * MINUTES_PER_DAY + 1, 4_294_967_295, i64::MAX] {
            RetentionWindow::minutes("runtime_stale_minutes", minutes).expect_err("too large");
        }
    }

    #[test]
    fn the_largest_window_begins_after_1970() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let since = RetentionWindow::days("d", DAYS_MAX).expect("in range").since(now);
        assert!(since > Some(Timestamp::from_micros(0)));
        assert!(since < Some(now));
    }
}
