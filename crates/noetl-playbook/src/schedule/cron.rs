//! Cron expressions: five fields, or six with leading seconds.

use std::ops::RangeInclusive;

use jiff::civil::{Date, DateTime, time};

/// Maximum number of days searched for the next match. February 29 recurs after at most eight
/// years.
const DAYS_MAX: usize = 9 * 366;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Maximum number of days in each month.
const LENGTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Error for an invalid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CronError {
    pub message: String,
    pub help: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    /// Whether the last day of the month matches (`L`).
    last_day: bool,
    months: u64,
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
    hourly: bool,
}

impl Cron {
    /// Parses a cron expression or shorthand.
    pub fn read(text: &str) -> Result<Self, CronError> {
        let written = text.trim();
        let meant = match WORDS.iter().find(|(word, _)| written.eq_ignore_ascii_case(word)) {
            Some((_, meant)) => meant,
            None if written.starts_with('@') => {
                let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                let message = format!("'{written}' stands for no expression");
                return Err(CronError {
                    message,
                    help: format!("write one of {}", words.join(", ")),
                });
            }
            None => written,
        };
        let mut fields: Vec<&str> = meant.split_whitespace().collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        let [seconds, minutes, hours, days, months, weekdays] = fields[..] else {
            let message = format!(
                "a cron expression has 5 fields, or 6 with seconds; this has {}",
                fields.len()
            );
            let help =
                "write minute, hour, day of the month, month and day of the week, as '0 2 * * *'";
            return Err(CronError { message, help: help.to_owned() });
        };
        let is_any = |field: &str| field == "*" || field == "?";
        let last_day = days.split(',').any(|part| part.eq_ignore_ascii_case("l"));
        let plain: Vec<&str> =
            days.split(',').filter(|part| !part.eq_ignore_ascii_case("l")).collect();
        let days_said = plain.join(",");
        let cron = Self {
            text: written.to_owned(),
            seconds: field("second", seconds, 0..=59, &[], false)?,
            minutes: field("minute", minutes, 0..=59, &[], false)?,
            hours: field("hour", hours, 0..=23, &[], false)?,
            days: match last_day && plain.is_empty() {
                true => 0,
                false => field("day of the month", &days_said, 1..=31, &[], true)?,
            },
            last_day,
            months: field("month", months, 1..=12, &MONTHS, false)?,
            weekdays: {
                let bits = field("day of the week", weekdays, 0..=7, &WEEKDAYS, true)?;
                // Sunday is both 0 and 7.
                (bits | bits >> 7) & 0x7f
            },
            any_day: is_any(days),
            any_weekday: is_any(weekdays),
            hourly: hours.starts_with('*'),
        };
        let fits = |month: usize| {
            let length = LENGTHS[month];
            cron.months >> (month + 1) & 1 == 1 && (1..=length).any(|day| cron.days >> day & 1 == 1)
        };
        if cron.any_weekday && !cron.last_day && !(0..12).any(fits) {
            let message = format!("no year has a day that '{written}' names");
            let help = "name a day that one of its months has".to_owned();
            return Err(CronError { message, help });
        }
        Ok(cron)
    }

    /// Returns the expression as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the hour field starts with `*`, so that the expression follows elapsed
    /// hours instead of local time.
    pub(super) fn is_hourly(&self) -> bool {
        self.hourly
    }

    /// Returns the first matching local time at or after `from`.
    pub(super) fn next_shown(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut floor = (from.hour(), from.minute(), from.second());
        for _ in 0..DAYS_MAX {
            if has(self.months, date.month()) {
                if self.is_day(date)
                    && let Some((hour, minute, second)) = self.time_from(floor)
                {
                    return Some(date.to_datetime(time(hour, minute, second, 0)));
                }
                date = date.tomorrow().ok()?;
            } else {
                date = date.last_of_month().tomorrow().ok()?;
            }
            floor = (0, 0, 0);
        }
        None
    }

    /// Returns `true` if a date matches. If both day fields are restricted, either one suffices.
    fn is_day(&self, date: Date) -> bool {
        let is_last = self.last_day && date.day() == date.days_in_month();
        let by_date = is_last || has(self.days, date.day());
        let by_weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        match (self.any_day, self.any_weekday) {
            (false, false) => by_date || by_weekday,
            _ => by_date && by_weekday,
        }
    }

    fn time_from(&self, (hour, minute, second): (i8, i8, i8)) -> Option<(i8, i8, i8)> {
        for at_hour in (hour..24).filter(|hour| has(self.hours, *hour)) {
            let from = if at_hour == hour { minute } else { 0 };
            for at_minute in (from..60).filter(|minute| has(self.minutes, *minute)) {
                let from = if (at_hour, at_minute) == (hour, minute) { second } else { 0 };
                if let Some(second) = (from..60).find(|second| has(self.seconds, *second)) {
                    return Some((at_hour, at_minute, second));
                }
            }
        }
        None
    }
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set >> number & 1 == 1)
}

/// Parses a field to a bit set of its numbers.
fn field(
    name: &str,
    text: &str,
    bounds: RangeInclusive<u32>,
    words: &[&str],
    may_be_open: bool,
) -> Result<u64, CronError> {
    let wrong = |part: &str, why: &str| {
        let (from, to) = (bounds.start(), bounds.end());
        let words = match words {
            [] => String::new(),
            [first, .., last] => format!(", or names ({first} to {last})"),
            [only] => format!(", or {only}"),
        };
        CronError {
            message: format!("{name}: '{part}' {why}"),
            help: format!("write numbers from {from} to {to}{words}, as *, 1, 1-5, */10 or 1,2"),
        }
    };
    let number = |part: &str, text: &str| -> Result<u32, CronError> {
        let named = words.iter().position(|word| text.eq_ignore_ascii_case(word));
        let first = if *bounds.start() == 1 { 1 } else { 0 };
        let named = named.and_then(|at| u32::try_from(at).ok()).map(|at| at + first);
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = named.or_else(|| text.parse().ok().filter(|_| is_plain));
        let value = value.ok_or_else(|| wrong(part, "is not understood"))?;
        if bounds.contains(&value) { Ok(value) } else { Err(wrong(part, "is out of range")) }
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step = step.parse().ok().filter(|step| (1..=*bounds.end()).contains(step));
                (range, Some(step.ok_or_else(|| wrong(part, "has no step that is possible"))?))
            }
            None => (part, None),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (*bounds.start(), *bounds.end()),
            ("?", _) if may_be_open && step.is_none() => (*bounds.start(), *bounds.end()),
            (_, Some((from, to))) => (number(part, from)?, number(part, to)?),
            (one, None) => {
                let one = number(part, one)?;
                // '5/10' means from 5 on, in steps of 10.
                (one, if step.is_some() { *bounds.end() } else { one })
            }
        };
        if from > to {
            return Err(wrong(part, "ends before it begins"));
        }
        for at in (from..=to).step_by(step.unwrap_or(1) as usize) {
            set |= 1 << at;
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn next(text: &str, from: DateTime) -> String {
        let cron = Cron::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        cron.next_shown(from).map(|value| value.to_string()).unwrap_or_default()
    }

    #[test]
    fn fields_are_lists_ranges_steps_and_names() {
        let from = date(2026, 1, 1).at(0, 0, 30, 0);
        for (text, expected) in [
            ("* * * * *", "2026-01-01T00:01:00"),
            ("* * * * * *", "2026-01-01T00:00:30"),
            ("5/20 * * * *", "2026-01-01T00:05:00"),
            ("0 6-8,20 * * *", "2026-01-01T06:00:00"),
            ("0 0 * FEB Mon", "2026-02-02T00:00:00"),
            ("0 0 * * 7", "2026-01-04T00:00:00"),
            ("0 0 ? * 5-7", "2026-01-02T00:00:00"),
            ("0 0 13 * fri", "2026-01-02T00:00:00"),
            ("0 0 13,L 2 *", "2026-02-13T00:00:00"),
            ("@weekly", "2026-01-04T00:00:00"),
            ("@Hourly", "2026-01-01T01:00:00"),
            ("0 0 31 4,5 *", "2026-05-31T00:00:00"),
            ("59 59 23 31 12 *", "2026-12-31T23:59:59"),
        ] {
            assert_eq!(next(text, from), expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_field_is_reported() {
        let error = |text: &str| Cron::read(text).expect_err(text).to_string();
        for (text, expected) in [
            ("", "a cron expression has 5 fields, or 6 with seconds; this has 0"),
            ("* * * *", "a cron expression has 5 fields, or 6 with seconds; this has 4"),
            ("1 2 3 4 5 6 7", "a cron expression has 5 fields, or 6 with seconds; this has 7"),
            ("60 * * * *", "minute: '60' is out of range"),
            ("* 24 * * *", "hour: '24' is out of range"),
            ("* * 0 * *", "day of the month: '0' is out of range"),
            ("* * * 13 *", "month: '13' is out of range"),
            ("* * * * 8", "day of the week: '8' is out of range"),
            ("* * * * funday", "day of the week: 'funday' is not understood"),
            ("5-1 * * * *", "minute: '5-1' ends before it begins"),
            ("*/0 * * * *", "minute: '*/0' has no step that is possible"),
            ("*/99999999999 * * * *", "minute: '*/99999999999' has no step that is possible"),
            ("-1 * * * *", "minute: '-1' is not understood"),
            ("1, * * * *", "minute: '' is not understood"),
            ("? * * * *", "minute: '?' is not understood"),
            ("+5 * * * *", "minute: '+5' is not understood"),
            ("0 0 30 2 *", "no year has a day that '0 0 30 2 *' names"),
            ("@never", "'@never' stands for no expression"),
        ] {
            assert_eq!(error(text), expected);
        }
        let help = Cron::read("* * * * x").expect_err("no day").help;
        assert_eq!(
            help,
            "write numbers from 0 to 7, or names (sun to sat), as *, 1, 1-5, */10 or 1,2"
        );
    }

    #[test]
    fn the_last_representable_time_does_not_panic() {
        let end = DateTime::MAX;
        assert_eq!(next("0 0 1 1 *", end), "");
    }
}
