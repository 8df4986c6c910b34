//! Durations: seconds as a number, or text such as `30s`, `5m`, `1h`, `500ms`.

use std::time::Duration;

use noetl_template::Template;

use super::context::Context;
use super::cursor::Cursor;
use crate::yaml::NodeKind;

/// Maximum timeout. A year exceeds the run time of any step and keeps sums of timestamps far from
/// overflow.
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Decodes a timeout. Returns `None` after reporting an error.
pub(super) fn timeout(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Duration> {
    let help = "write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h";
    if is_template(at) {
        let help = "write the number itself";
        cx.unsupported(at.position(), "a template as timeout is", help);
        return None;
    }
    let timeout = seconds(at).and_then(timeout_of);
    if timeout.is_none() {
        cx.error("E009", at, "this is not a timeout between 1 ns and one year", help);
    }
    timeout
}

/// Returns `true` if the value is a template, and so unknown until it is rendered.
pub(super) fn is_template(at: &Cursor<'_>) -> bool {
    at.node.text().is_some_and(Template::is_template)
}

/// Returns the seconds that a value denotes, or `None` if it is not a duration.
pub(super) fn seconds(at: &Cursor<'_>) -> Option<f64> {
    match &at.node.kind {
        NodeKind::Int(seconds) => Some(*seconds as f64),
        NodeKind::Large(seconds) => Some(*seconds as f64),
        NodeKind::Float(seconds) => Some(*seconds),
        NodeKind::Text(text, _) => seconds_in(text),
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}

/// Converts seconds to a timeout. Returns `None` unless it is between 1 ns and one year.
pub fn timeout_of(seconds: f64) -> Option<Duration> {
    Some(seconds)
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|timeout| !timeout.is_zero() && *timeout <= TIMEOUT_MAX)
}

/// Parses a duration such as `30s` to seconds.
pub fn seconds_in(text: &str) -> Option<f64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * scale)
}
