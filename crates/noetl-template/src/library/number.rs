//! Filters that convert to numbers and booleans. A value that is not a number becomes the default,
//! as in Jinja2.

use minijinja::Error;
use minijinja::value::{Kwargs, ValueKind};

use super::{Library, argument};
use crate::data::Data;
use crate::data::truthy;

pub(super) fn register(library: &mut Library) {
    library.filter("int", int);
    library.filter("float", float);
    library.filter("bool", |v: &Data| truthy(v));
}

fn int(
    value: &Data,
    default: Option<Data>,
    base: Option<u32>,
    named: Kwargs,
) -> Result<Data, Error> {
    let default = argument(default, &named, "default")?;
    let base = argument(base, &named, "base")?.unwrap_or(10);
    named.assert_all_used()?;
    let number = match value.kind() {
        ValueKind::Bool => Some(Data::from(i64::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => Some(value.clone()),
        ValueKind::Number => f64::try_from(value.clone()).ok().and_then(whole),
        ValueKind::String => parse_int(value.as_str().unwrap_or_default(), base),
        _ => None,
    };
    Ok(number.or(default).unwrap_or_else(|| Data::from(0)))
}

/// Parses like Python's `int(text, base)`. Also accepts a decimal fraction and truncates it.
fn parse_int(text: &str, base: u32) -> Option<Data> {
    let text = text.trim().replace('_', "");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        3..=36 => "",
        _ => return None,
    };
    let lower = digits.to_ascii_lowercase();
    let bare = lower.strip_prefix(prefix).unwrap_or(&lower);
    if bare.starts_with(['+', '-']) {
        return None;
    }
    if let Ok(number) = i128::from_str_radix(bare, base) {
        let number = if negative { -number } else { number };
        return i64::try_from(number)
            .map(Data::from)
            .or_else(|_| u64::try_from(number).map(Data::from))
            .ok();
    }
    text.parse::<f64>().ok().and_then(whole)
}

/// Truncates a float to an integer, if it fits 64 bits.
fn whole(number: f64) -> Option<Data> {
    /// Smallest float above the largest 64-bit integer.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    (number.is_finite() && (-BOUND..BOUND).contains(&number)).then(|| Data::from(number as i64))
}

fn float(value: &Data, default: Option<Data>, named: Kwargs) -> Result<Data, Error> {
    let default = argument(default, &named, "default")?;
    named.assert_all_used()?;
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => value.as_str().and_then(|text| text.trim().parse().ok()),
        _ => None,
    };
    Ok(match number.filter(|number| number.is_finite()) {
        Some(number) => Data::from(number),
        None => default.unwrap_or_else(|| Data::from(0.0)),
    })
}
