//! Formats dates and times of Postgres in ISO 8601.
//!
//! Postgres supports dates from 4713 BC to far beyond the year 9999, and two infinite ones. This
//! module has its own calendar arithmetic, because calendar libraries have a narrower range.

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Formats a date, in days since 2000-01-01.
pub(crate) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => day(i64::from(days)),
    }
}

/// Formats a timestamp, in microseconds since 2000-01-01, followed by the text of the zone.
pub(crate) fn timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => {
            let date = day(micros.div_euclid(MICROS_PER_DAY));
            format!("{date}T{}{zone}", time(micros.rem_euclid(MICROS_PER_DAY)))
        }
    }
}

/// Formats a time of day, in microseconds since midnight.
pub(crate) fn time(micros: i64) -> String {
    let seconds = micros / MICROS_PER_SECOND;
    let fraction = micros % MICROS_PER_SECOND;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => text,
        fraction => format!("{text}.{fraction:06}"),
    }
}

/// Formats a time of day with a zone, in seconds west of Greenwich.
pub(crate) fn time_with_zone(micros: i64, west: i32) -> String {
    let sign = if west > 0 { '-' } else { '+' };
    let offset = west.unsigned_abs();
    format!("{}{sign}{:02}:{:02}", time(micros), offset / 3600, offset / 60 % 60)
}

/// Formats a duration such as `P1Y2M3DT4H5M6.5S`, which Postgres can parse.
pub(crate) fn interval(micros: i64, days: i32, months: i32) -> String {
    let mut text = String::from("P");
    let mut part = |amount: i64, unit: char| {
        if amount != 0 {
            text.push_str(&format!("{amount}{unit}"));
        }
    };
    part(i64::from(months / 12), 'Y');
    part(i64::from(months % 12), 'M');
    part(i64::from(days), 'D');
    if micros != 0 {
        text.push('T');
        let seconds = micros / MICROS_PER_SECOND;
        let fraction = (micros % MICROS_PER_SECOND).unsigned_abs();
        let mut part = |amount: i64, unit: char| {
            if amount != 0 {
                text.push_str(&format!("{amount}{unit}"));
            }
        };
        part(seconds / 3600, 'H');
        part(seconds / 60 % 60, 'M');
        match fraction {
            0 => part(seconds % 60, 'S'),
            fraction => {
                let sign = if micros < 0 { "-" } else { "" };
                let digits = format!("{fraction:06}");
                let digits = digits.trim_end_matches('0');
                let seconds = (seconds % 60).unsigned_abs();
                text.push_str(&format!("{sign}{seconds}.{digits}S"));
            }
        }
    }
    match text.as_str() {
        "P" => "PT0S".to_owned(),
        _ => text,
    }
}

/// Returns the Gregorian date that is `days` days after 2000-01-01, computed in eras of 400 years
/// that start on March 1.
fn day(days: i64) -> String {
    const DAYS_PER_ERA: i64 = 146_097;
    /// Days from 0000-03-01 to 2000-01-01.
    const EPOCH: i64 = 730_425;
    let days = days + EPOCH;
    let era = days.div_euclid(DAYS_PER_ERA);
    let of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        // ISO 8601 requires a sign for more than four digits. The year 0 is 1 BC.
        year if year < 0 => format!("-{:04}-{month:02}-{day:02}", -year),
        year => format!("+{year}-{month:02}-{day:02}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        assert_eq!(date(0), "2000-01-01");
        assert_eq!(date(59), "2000-02-29");
        assert_eq!(date(-1), "1999-12-31");
        assert_eq!(date(8_766), "2024-01-01");
        assert_eq!(date(i32::MAX), "infinity");
        assert_eq!(date(2_921_940), "+10000-01-01");
    }

    #[test]
    fn times_have_a_fraction_only_if_it_is_not_zero() {
        assert_eq!(time(0), "00:00:00");
        assert_eq!(time(86_399_000_001), "23:59:59.000001");
        assert_eq!(timestamp(-1, ""), "1999-12-31T23:59:59.999999");
        assert_eq!(timestamp(0, "+00:00"), "2000-01-01T00:00:00+00:00");
        assert_eq!(time_with_zone(0, -7200), "00:00:00+02:00");
        assert_eq!(time_with_zone(0, 12_600), "00:00:00-03:30");
    }

    #[test]
    fn intervals_are_formatted_part_by_part() {
        assert_eq!(interval(0, 0, 0), "PT0S");
        assert_eq!(interval(14_706_500_000, 3, 14), "P1Y2M3DT4H5M6.5S");
        assert_eq!(interval(-500_000, 0, 0), "PT-0.5S");
        assert_eq!(interval(0, -1, 0), "P-1D");
    }

    proptest! {
        #[test]
        fn days_match_another_calendar_library(days in -700_000_i32..2_900_000) {
            let start = jiff::civil::date(2000, 1, 1);
            let there = start.checked_add(jiff::Span::new().days(days)).unwrap();
            prop_assert_eq!(date(days), there.to_string());
        }
    }
}
