//! Timestamps with microsecond precision, the finest that both stores support.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since 1970-01-01T00:00:00Z. The text form is RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Error for text that is not an RFC 3339 timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an RFC 3339 time")]
pub struct TimestampError(String);

impl Timestamp {
    /// Creates a timestamp from microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Creates a timestamp from milliseconds since the Unix epoch. Saturates on overflow.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Returns the microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the whole milliseconds since the Unix epoch, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns this timestamp plus `by`. Saturates at the maximum.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns this timestamp minus `by`. Saturates at the minimum.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the duration from `earlier` to this timestamp, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the year and calendar quarter, 1 to 4, in UTC, or `None` outside the years −9999 to
    /// 9999.
    pub fn quarter(self) -> Option<(i16, i8)> {
        let date = self.to_jiff()?.to_zoned(jiff::tz::TimeZone::UTC).date();
        Some((date.year(), (date.month() - 1) / 3 + 1))
    }

    /// Returns `true` if the year is 1 to 9999, which every store and every client can read.
    pub fn has_common_year(self) -> bool {
        self.quarter().is_some_and(|(year, _)| year > 0)
    }

    /// Returns the text form with `+00:00` instead of `Z`, as subscription fields use it.
    pub fn with_offset(self) -> String {
        let text = self.to_string();
        match text.strip_suffix('Z') {
            Some(local) => format!("{local}+00:00"),
            None => text,
        }
    }

    /// Converts to a `jiff` timestamp for formatting, or returns `None` outside the years −9999 to
    /// 9999.
    pub fn to_jiff(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_microsecond(self.0).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_jiff() {
            Some(instant) => fmt::Display::fmt(&instant, f),
            None => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| Self(instant.as_microsecond()))
            .map_err(|_| TimestampError(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_rfc_3339_in_utc() {
        let at = Timestamp::from_micros(1_704_067_200_000_001);
        assert_eq!(at.to_string(), "2024-01-01T00:00:00.000001Z");
        assert_eq!("2024-01-01T01:00:00.000001+01:00".parse(), Ok(at));
        assert_eq!(at.with_offset(), "2024-01-01T00:00:00.000001+00:00");
        assert_eq!(at.with_offset().parse(), Ok(at));
        assert_eq!(Timestamp::from_micros(i64::MAX).with_offset(), "9223372036854775807us");
    }

    #[test]
    fn a_quarter_begins_with_its_first_month() {
        for (text, quarter) in [
            ("2026-01-01T00:00:00Z", (2026, 1)),
            ("2026-03-31T23:59:59.999999Z", (2026, 1)),
            ("2026-04-01T00:00:00Z", (2026, 2)),
            ("2026-09-30T23:59:59Z", (2026, 3)),
            ("2026-12-31T23:59:59Z", (2026, 4)),
        ] {
            let at: Timestamp = text.parse().expect("a time");
            assert_eq!(at.quarter(), Some(quarter), "{text}");
        }
        assert_eq!(Timestamp::from_micros(i64::MAX).quarter(), None);
    }

    #[test]
    fn time_has_two_ends() {
        let at = Timestamp::from_micros(-5);
        assert_eq!(at.plus(Duration::from_micros(7)), Timestamp::from_micros(2));
        assert_eq!(at.minus(Duration::from_micros(7)), Timestamp::from_micros(-12));
        assert_eq!(Timestamp::from_micros(5).plus(Duration::MAX).as_micros(), i64::MAX);
        assert_eq!(at.minus(Duration::MAX).as_micros(), i64::MIN);
    }

    #[test]
    fn a_later_start_gives_no_negative_duration() {
        let early = Timestamp::from_millis(1);
        let late = Timestamp::from_millis(3);
        assert_eq!(late.since(early), Duration::from_millis(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
