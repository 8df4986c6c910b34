//! Reads settings without a flag from the environment. The program doesn't start if a value is
//! invalid, and the error names the variable.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::{CliError, ErrorKind};

/// Returns the value of an environment variable. An empty value counts as unset.
#[expect(clippy::disallowed_methods, reason = "the one place that reads settings")]
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns all environment variables with a name and value in UTF-8.
pub(crate) fn settings() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text)
}

/// Reads a Boolean variable, which defaults to `false`.
pub(crate) fn switch(name: &str) -> Result<bool, CliError> {
    let text = setting(name).unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "" | "false" | "0" | "no" | "off" => Ok(false),
        _ => {
            let message = format!("{name} is true or false, not '{text}'");
            Err(CliError::new(ErrorKind::Config, message))
        }
    }
}

/// Reads a number, or returns `None` if it is unset. Fails if it is outside the range.
pub(crate) fn number(name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, CliError> {
    let Some(text) = setting(name) else { return Ok(None) };
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    let number = number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        let message = format!("{name} is a number from {least} to {most}, not '{text}'");
        CliError::new(ErrorKind::Config, message)
    });
    number.map(Some)
}

/// Reads a number of seconds, or returns `None` if it is unset. Fails if it is outside the range.
pub(crate) fn seconds(name: &str, least: i64, most: i64) -> Result<Option<Duration>, CliError> {
    let seconds = number(name, least..=most)?;
    Ok(seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs))
}
