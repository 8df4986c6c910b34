//! Settings that have no flag, from the environment. A value that cannot be used stops the start
//! and is named.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use crate::failure::{Failure, Kind};

/// One variable of the environment; an empty one counts as unset.
#[expect(clippy::disallowed_methods, reason = "the one place that reads settings")]
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Every variable of the environment that is text.
pub(crate) fn settings() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text)
}

/// A switch that is off unless it is said to be on.
pub(crate) fn switch(name: &str) -> Result<bool, Failure> {
    let text = setting(name).unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "" | "false" | "0" | "no" | "off" => Ok(false),
        _ => {
            let message = format!("{name} is true or false, not '{text}'");
            Err(Failure::new(Kind::Config, message))
        }
    }
}

/// A number within bounds.
pub(crate) fn number(name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, Failure> {
    let Some(text) = setting(name) else { return Ok(None) };
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    let number = number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        let message = format!("{name} is a number from {least} to {most}, not '{text}'");
        Failure::new(Kind::Config, message)
    });
    number.map(Some)
}
