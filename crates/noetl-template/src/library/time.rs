//! Template filter `strftime`, which formats timestamps.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use minijinja::Error;
use minijinja::value::ValueKind;

use super::{Library, fail};
use crate::data::Data;
use crate::json::{show, text};
use crate::limit::check_text;

pub(super) fn register(library: &mut Library) {
    library.filter("strftime", strftime);
}

/// Formats an RFC 3339 time, or seconds since the Unix epoch, in UTC with a `strftime` format.
fn strftime(value: &Data, format: &str) -> Result<String, Error> {
    /// Maximum length of a format in bytes. A longer one, or a large width within it, is not a date
    /// format.
    const FORMAT_BYTES_MAX: usize = 256;
    if format.len() > FORMAT_BYTES_MAX || has_width(format) {
        return fail("the time format is too long");
    }
    let Some(instant) = instant(value)? else {
        return fail(format!("{} is not a time", show(value)));
    };
    match strtime::format(format, &instant.to_zoned(TimeZone::UTC)) {
        Ok(formatted) => {
            check_text(Some(formatted.len()))?;
            Ok(formatted)
        }
        Err(error) => fail(format!("bad time format: {error}")),
    }
}

/// Returns `true` if a directive requests a width of three or more digits.
fn has_width(format: &str) -> bool {
    format.split('%').skip(1).any(|directive| {
        let digits = directive.trim_start_matches(['-', '_', '^', '#', '.', ':']);
        digits.bytes().take_while(u8::is_ascii_digit).count() > 2
    })
}

fn instant(value: &Data) -> Result<Option<Timestamp>, Error> {
    if value.kind() == ValueKind::Number {
        let seconds = f64::try_from(value.clone())?;
        let duration = jiff::SignedDuration::try_from_secs_f64(seconds).ok();
        return Ok(duration.and_then(|duration| Timestamp::from_duration(duration).ok()));
    }
    let text = text(value)?;
    let civil = || text.parse::<jiff::civil::DateTime>().ok();
    Ok(text.parse().ok().or_else(|| {
        let zoned = civil()?.to_zoned(TimeZone::UTC).ok()?;
        Some(zoned.timestamp())
    }))
}
