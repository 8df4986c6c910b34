//! Scalars of the YAML 1.2 core schema.

use std::rc::Rc;

use super::node::{NodeKind, QuoteStyle};

/// Error for a scalar that does not match its tag, or a number that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScalarError {
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Parses a scalar without a tag.
pub(super) fn untagged(text: &str, style: QuoteStyle) -> Result<NodeKind, ScalarError> {
    if style == QuoteStyle::Plain { plain(text) } else { Ok(NodeKind::Text(Rc::from(text), style)) }
}

/// Parses a scalar with the core tag `!!name`.
pub(super) fn tagged(name: &str, text: &str, style: QuoteStyle) -> Result<NodeKind, ScalarError> {
    if name == "str" {
        return Ok(NodeKind::Text(Rc::from(text), style));
    }
    if !matches!(name, "int" | "float" | "bool" | "null") {
        return Err(unknown(&format!("!!{name}")));
    }
    match (name, plain(text)?) {
        ("float", NodeKind::Int(value)) => Ok(NodeKind::Float(value as f64)),
        ("float", NodeKind::Large(value)) => Ok(NodeKind::Float(value as f64)),
        ("float", kind @ NodeKind::Float(_))
        | ("int", kind @ (NodeKind::Int(_) | NodeKind::Large(_)))
        | ("bool", kind @ NodeKind::Bool(_))
        | ("null", kind @ NodeKind::Null) => Ok(kind),
        _ => Err(misfit(name, text)),
    }
}

/// Returns the error for an unknown tag.
pub(super) fn unknown(tag: &str) -> ScalarError {
    ScalarError {
        message: format!("the tag '{tag}' is not known here"),
        help: "remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and \
               !!map are understood",
    }
}

fn misfit(name: &str, text: &str) -> ScalarError {
    ScalarError {
        message: format!("'{text}' is tagged !!{name} but is not one"),
        help: "remove the tag or correct the value",
    }
}

fn plain(text: &str) -> Result<NodeKind, ScalarError> {
    let kind = match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => NodeKind::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => NodeKind::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => NodeKind::Float(f64::NEG_INFINITY),
        _ => {
            return Ok(plain_number(text)?
                .unwrap_or_else(|| NodeKind::Text(Rc::from(text), QuoteStyle::Plain)));
        }
    };
    Ok(kind)
}

/// Parses a plain scalar as a number. Returns `None` if it is not one.
fn plain_number(text: &str) -> Result<Option<NodeKind>, ScalarError> {
    let first = text.as_bytes().first().copied().unwrap_or(b' ');
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return Ok(None);
    }
    let radix = match text.get(..2) {
        Some("0x") => Some(16),
        Some("0o") => Some(8),
        _ => None,
    };
    if let Some(radix) = radix {
        let digits = &text[2..];
        let spelled = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        return if spelled {
            integer(text, u64::from_str_radix(digits, radix).ok()).map(Some)
        } else {
            Ok(None)
        };
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Some(NodeKind::Int(value)));
        }
        return integer(text, text.parse().ok()).map(Some);
    }
    let numeric =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    Ok(if text.bytes().all(numeric) { text.parse().ok().map(NodeKind::Float) } else { None })
}

fn integer(text: &str, value: Option<u64>) -> Result<NodeKind, ScalarError> {
    let value = value.ok_or_else(|| ScalarError {
        message: format!("the number {text} does not fit 64 bits"),
        help: "put it in quotes to keep it as text",
    })?;
    Ok(i64::try_from(value).map_or(NodeKind::Large(value), NodeKind::Int))
}
