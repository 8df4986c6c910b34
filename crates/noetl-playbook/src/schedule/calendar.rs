//! Conversion of cron times from local time to instants.
//!
//! Daylight saving time skips and repeats local times. A skipped time runs at the moment of the
//! transition, so that a run at 02:30 is not lost on that day; several skipped times yield a single
//! run. A repeated time runs only the first time. An expression whose hour starts with `*` follows
//! elapsed hours instead: it runs in both of two repeated hours, and not in a skipped one.

use std::fmt;
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp as Instant};
use noetl_model::Timestamp;

use super::cron::Cron;

/// Time zone rules bundled at build time, so that every process uses the same rules.
static PLACES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone of the IANA database.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// Returns the zone with this name in the IANA database, or `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let rules = PLACES.get(name).ok()?;
        Some(Self { name: rules.iana_name().unwrap_or(name).to_owned(), rules })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name).finish()
    }
}

/// Returns the names of all zones.
pub fn zone_names() -> Vec<String> {
    PLACES.available().map(|name| name.as_str().to_owned()).collect()
}

/// Returns the first run time after `after`, or `None` if there is none within a few years.
pub(super) fn after(cron: &Cron, zone: &Zone, after: Timestamp) -> Option<Timestamp> {
    let first = first_after(cron, &zone.rules, after.to_jiff()?)?;
    Some(Timestamp::from_micros(first.as_microsecond()))
}

fn first_after(cron: &Cron, rules: &TimeZone, after: Instant) -> Option<Instant> {
    let shown = rules.to_datetime(after);
    let mut from = shown.with().subsec_nanosecond(0).build().ok()?;
    // Within the first of two repeated hours, the next run may have an earlier local time in the
    // second.
    if let AmbiguousOffset::Fold { before, after: later } =
        rules.to_ambiguous_timestamp(shown).offset()
        && cron.is_hourly()
        && rules.to_offset(after) == before
    {
        let twice = i64::from(before.seconds()) - i64::from(later.seconds());
        from = from.checked_sub(SignedDuration::from_secs(twice)).ok()?;
    }
    let mut second: Option<Instant> = None;
    while let Some(shown) = cron.next_shown(from) {
        from = shown.checked_add(SignedDuration::from_secs(1)).ok()?;
        let Some((first, again)) = instants(cron, rules, shown)? else { continue };
        if first > after {
            return Some(second.map_or(first, |second| second.min(first)));
        }
        let again = again.filter(|again| *again > after);
        second = match (second, again) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    second
}

/// Instant of a local time, and its repetition if that counts.
type Shown = (Instant, Option<Instant>);

/// Returns the instants of a local time. The inner `None` means that the time is skipped and does
/// not run; the outer `None` means that the instant is out of range.
fn instants(cron: &Cron, rules: &TimeZone, shown: DateTime) -> Option<Option<Shown>> {
    let at = || rules.to_ambiguous_timestamp(shown);
    match at().offset() {
        AmbiguousOffset::Unambiguous { .. } => Some(Some((at().compatible().ok()?, None))),
        // Hourly expressions don't run in a skipped hour.
        AmbiguousOffset::Gap { .. } if cron.is_hourly() => Some(None),
        AmbiguousOffset::Gap { .. } => {
            let past = at().later().ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
            Some(Some((rules.preceding(past).next()?.timestamp(), None)))
        }
        AmbiguousOffset::Fold { .. } => {
            let again = if cron.is_hourly() { at().later().ok() } else { None };
            Some(Some((at().earlier().ok()?, again)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first times after an instant, in UTC.
    fn times(expression: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let cron = Cron::read(expression).expect("an expression");
        let zone = Zone::named(zone).expect("a zone");
        let mut at: Timestamp = from.parse().expect("a time");
        let mut times = Vec::new();
        for _ in 0..count {
            at = after(&cron, &zone, at).expect("a time");
            times.push(at.to_string());
        }
        times
    }

    #[test]
    fn runs_follow_the_local_time_of_the_zone() {
        assert_eq!(
            times("*/15 9-10 * * mon-fri", "UTC", "2026-01-02T10:44:59Z", 3),
            ["2026-01-02T10:45:00Z", "2026-01-05T09:00:00Z", "2026-01-05T09:15:00Z"]
        );
        assert_eq!(
            times("0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 1),
            ["2026-01-01T03:30:00Z"]
        );
        // Strictly after: what is due now was due now.
        assert_eq!(times("0 9 * * *", "UTC", "2026-01-01T09:00:00Z", 1), ["2026-01-02T09:00:00Z"]);
        assert_eq!(
            times("*/10 * * * * *", "UTC", "2026-01-01T00:00:09.5Z", 2),
            ["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"]
        );
    }

    #[test]
    fn a_skipped_local_time_runs_when_the_clock_moves_forward() {
        // Berlin: on 29 March 2026 02:00 is followed by 03:00, at 01:00 UTC.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3),
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        // Two such times are one run, and one that has its own time keeps it.
        assert_eq!(
            times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
            ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"]
        );
        // New York: on 8 March 2026 at 07:00 UTC.
        assert_eq!(
            times("15 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", 2),
            ["2026-03-08T07:00:00Z", "2026-03-09T06:15:00Z"]
        );
        // An hour that is not there is not run in.
        assert_eq!(
            times("30 * * * *", "America/New_York", "2026-03-08T05:00:00Z", 3),
            ["2026-03-08T05:30:00Z", "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"]
        );
    }

    #[test]
    fn a_repeated_local_time_runs_once_unless_the_schedule_runs_every_hour() {
        // Berlin: on 25 October 2026 03:00 is followed by 02:00, at 01:00 UTC.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(
            times("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 6),
            [
                "2026-10-25T00:00:00Z",
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:00:00Z",
                "2026-10-25T02:30:00Z",
            ]
        );
        // New York: on 1 November 2026 at 06:00 UTC. Asked within either of the two hours.
        let asked = |from| times("30 1 * * *", "America/New_York", from, 1);
        assert_eq!(asked("2026-11-01T04:00:00Z"), ["2026-11-01T05:30:00Z"]);
        assert_eq!(asked("2026-11-01T05:45:00Z"), ["2026-11-02T06:30:00Z"]);
        assert_eq!(asked("2026-11-01T06:10:00Z"), ["2026-11-02T06:30:00Z"]);
        assert_eq!(
            times("10 * * * *", "America/New_York", "2026-11-01T05:45:00Z", 2),
            ["2026-11-01T06:10:00Z", "2026-11-01T07:10:00Z"]
        );
    }

    #[test]
    fn a_skipped_day_loses_no_run() {
        // Samoa had no 30 December 2011.
        assert_eq!(
            times("0 12 * * *", "Pacific/Apia", "2011-12-29T22:30:00Z", 2),
            ["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]
        );
    }

    #[test]
    fn the_29th_of_february_and_the_last_day_of_a_month_are_supported() {
        assert_eq!(
            times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]
        );
        assert_eq!(times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
        assert_eq!(
            times("0 0 L * *", "UTC", "2027-01-31T00:00:00Z", 3),
            ["2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z", "2027-04-30T00:00:00Z"]
        );
    }

    #[test]
    fn only_names_of_time_zones_are_accepted() {
        assert_eq!(
            Zone::named("europe/berlin").map(|zone| zone.name().to_owned()).as_deref(),
            Some("Europe/Berlin")
        );
        for unknown in ["", "Mars/Phobos", "../etc/passwd", "CET+1"] {
            assert_eq!(Zone::named(unknown), None, "{unknown}");
        }
        assert!(zone_names().len() > 400);
    }
}
