//! Numeric parameters of a policy: literals, or templates rendered when the rule applies.

use noetl_template::Template;
use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::{duration, value};
use crate::yaml::NodeKind;

/// Decodes the maximum number of attempts of a task.
pub(super) fn attempts(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Value> {
    if let Some(template) = template(cx, at) {
        return Some(template);
    }
    let number = match &at.node.kind {
        NodeKind::Int(number) => Some(*number),
        NodeKind::Text(text, _) => text.trim().parse().ok(),
        _ => None,
    };
    if let Some(number) = number.filter(|number| (1..=i64::from(u32::MAX)).contains(number)) {
        return Some(Value::from(number));
    }
    let message = "'attempts' counts every execution, so it is at least 1";
    cx.error("E040", at, message, "write a whole number from 1");
    None
}

/// Decodes a delay in seconds, or with a unit. 0 means no delay.
pub(super) fn seconds(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Value> {
    if let Some(template) = template(cx, at) {
        return Some(template);
    }
    let seconds = duration::seconds(at);
    let most = duration::TIMEOUT_MAX.as_secs_f64();
    if let Some(seconds) = seconds.filter(|seconds| (0.0..=most).contains(seconds)) {
        return Some(number(seconds));
    }
    let help = "write seconds (2, 0.5), a number with a unit (500ms, 5m), or 0 for none";
    cx.error("E040", at, "this is not a pause of up to one year", help);
    None
}

/// Decodes a fraction from 0 to 1.
pub(super) fn fraction(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Value> {
    if let Some(template) = template(cx, at) {
        return Some(template);
    }
    let part = match at.node.kind {
        NodeKind::Int(number @ 0..=1) => Some(number as f64),
        NodeKind::Float(number) if (0.0..=1.0).contains(&number) => Some(number),
        _ => None,
    };
    if let Some(part) = part {
        return Some(number(part));
    }
    let message = "'jitter' is the fraction by which a pause may be shorter, 0 to 1";
    cx.error("E040", at, message, "write 0.2 to make each pause up to a fifth shorter, at random");
    None
}

/// Converts a number to JSON, without a fraction part if it is whole.
fn number(number: f64) -> Value {
    let whole = number as i64;
    if whole as f64 == number { Value::from(whole) } else { Value::from(number) }
}

fn template(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Value> {
    let written = at.node.text().filter(|text| Template::is_template(text))?;
    value::decode(cx, at);
    Some(Value::from(written))
}
