//! Typed field decoders. Each returns `None` after reporting an error.

use std::ops::RangeInclusive;

use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::decode::keys;
use crate::yaml::NodeKind;

/// Decodes a mapping, if present, and warns about its unknown keys.
pub(in crate::decode) fn section<'b>(
    cx: &mut Context<'_>,
    at: &'b Cursor<'_>,
    name: &'b str,
    known: &[&str],
) -> Option<Cursor<'b>> {
    let value = at.get(name)?;
    if !cx.is_map(&value, &format!("write '{name}:' and its keys below")) {
        return None;
    }
    keys::warn_unknown(cx, &value, known, keys::none);
    Some(value)
}

/// Decodes a nonempty text, if present.
pub(in crate::decode) fn text(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str) -> Option<String> {
    let value = at.get(name)?;
    match value.text() {
        Some("") => {
            let message = format!("'{name}' is empty");
            cx.error("E081", &value, message, "write at least one character, or remove it");
            None
        }
        Some(text) => Some(text.to_owned()),
        None => {
            cx.expected(&value, "text", "put it in quotes");
            None
        }
    }
}

/// Decodes a required nonempty text.
pub(in crate::decode) fn needed_text(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &str,
    help: &str,
) -> Option<String> {
    if at.get(name).is_none() {
        cx.error("E080", at, format!("'{name}' is missing"), help);
        return None;
    }
    text(cx, at, name)
}

/// Decodes a word out of `words`, if present.
pub(in crate::decode) fn word<'w>(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &str,
    words: &'w [&'w str],
) -> Option<&'w str> {
    let value = at.get(name)?;
    // Some YAML parsers read an unquoted `off` as a boolean.
    let text = match value.node.kind {
        NodeKind::Bool(false) if words.contains(&"off") => Some("off"),
        _ => value.text(),
    };
    let word = words.iter().find(|word| Some(**word) == text);
    if word.is_none() {
        cx.not_one_of("E081", &value, words);
    }
    word.copied()
}

/// Decodes a required word out of `words`.
pub(in crate::decode) fn needed_word<'w>(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &str,
    words: &'w [&'w str],
) -> Option<&'w str> {
    if at.get(name).is_none() {
        let help = format!("write '{name}: {}', or another of: {}", words[0], words.join(", "));
        cx.error("E080", at, format!("'{name}' is missing"), help);
        return None;
    }
    word(cx, at, name, words)
}

pub(in crate::decode) fn flag(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str) -> Option<bool> {
    let value = at.get(name)?;
    match value.node.kind {
        NodeKind::Bool(answer) => Some(answer),
        _ => {
            cx.expected(&value, "true or false", "write true or false");
            None
        }
    }
}

/// Decodes a positive integer, if present.
pub(in crate::decode) fn positive(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &str,
) -> Option<u64> {
    integer_within(cx, at, name, 1..=u64::MAX)
}

/// Decodes an integer within `bounds`, if present.
pub(in crate::decode) fn integer_within(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &str,
    bounds: RangeInclusive<u64>,
) -> Option<u64> {
    let value = at.get(name)?;
    let number = match value.node.kind {
        NodeKind::Int(number) => u64::try_from(number).ok(),
        NodeKind::Large(number) => Some(number),
        NodeKind::Float(_) => None,
        _ => {
            cx.expected(&value, "a whole number", "write a number without quotes");
            return None;
        }
    };
    let number = number.filter(|number| bounds.contains(number));
    if number.is_none() {
        let help = match *bounds.end() {
            u64::MAX => format!("write a whole number that is at least {}", bounds.start()),
            end => format!("write a whole number from {} to {end}", bounds.start()),
        };
        cx.error("E081", &value, format!("'{name}' is out of range"), help);
    }
    number
}

/// Decodes a positive number, if present.
pub(in crate::decode) fn rate(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str) -> Option<f64> {
    let value = at.get(name)?;
    match value.node.kind {
        NodeKind::Float(number) if number > 0.0 && number.is_finite() => Some(number),
        NodeKind::Float(_) => {
            let message = format!("'{name}' is out of range");
            cx.error("E081", &value, message, "write a number above 0");
            None
        }
        // Rounding of integers above 2^53 is irrelevant for rates.
        _ => positive(cx, at, name).map(|number| number as f64),
    }
}

/// Decodes a list of texts; empty if missing.
pub(in crate::decode) fn texts(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str) -> Vec<String> {
    let Some(value) = at.get(name) else { return Vec::new() };
    if !value.is_list() {
        cx.expected(&value, "a list", "write '[a, b]'");
        return Vec::new();
    }
    let mut texts = Vec::new();
    for item in value.items() {
        match item.text() {
            Some(text) => texts.push(text.to_owned()),
            None => cx.expected(&item, "text", "put it in quotes"),
        }
    }
    texts
}
