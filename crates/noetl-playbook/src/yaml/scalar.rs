//! Scalars of the YAML 1.2 core schema.

use std::rc::Rc;

use super::node::{Kind, Style};

/// Error for a scalar that does not match its tag, or a number that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Parses a scalar without a tag.
pub(super) fn untagged(text: &str, style: Style) -> Result<Kind, Unfit> {
    if style == Style::Plain { plain(text) } else { Ok(Kind::Text(Rc::from(text), style)) }
}

/// Parses a scalar with the core tag `!!name`.
pub(super) fn tagged(name: &str, text: &str, style: Style) -> Result<Kind, Unfit> {
    if name == "str" {
        return Ok(Kind::Text(Rc::from(text), style));
    }
    if !matches!(name, "int" | "float" | "bool" | "null") {
        return Err(unknown(&format!("!!{name}")));
    }
    match (name, plain(text)?) {
        ("float", Kind::Int(value)) => Ok(Kind::Float(value as f64)),
        ("float", Kind::Large(value)) => Ok(Kind::Float(value as f64)),
        ("float", kind @ Kind::Float(_))
        | ("int", kind @ (Kind::Int(_) | Kind::Large(_)))
        | ("bool", kind @ Kind::Bool(_))
        | ("null", kind @ Kind::Null) => Ok(kind),
        _ => Err(misfit(name, text)),
    }
}

/// Returns the error for an unknown tag.
pub(super) fn unknown(tag: &str) -> Unfit {
    Unfit {
        message: format!("the tag '{tag}' is not known here"),
        help: "remove the tag; the core tags !!str, !!int, !!float, !!bool, !!null, !!seq and \
               !!map are understood",
    }
}

fn misfit(name: &str, text: &str) -> Unfit {
    Unfit {
        message: format!("'{text}' is tagged !!{name} but is not one"),
        help: "remove the tag or correct the value",
    }
}

fn plain(text: &str) -> Result<Kind, Unfit> {
    let kind = match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Kind::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Kind::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Kind::Float(f64::NEG_INFINITY),
        _ => {
            return Ok(
                plain_number(text)?.unwrap_or_else(|| Kind::Text(Rc::from(text), Style::Plain))
            );
        }
    };
    Ok(kind)
}

/// Parses a plain scalar as a number. Returns `None` if it is not one.
fn plain_number(text: &str) -> Result<Option<Kind>, Unfit> {
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
            return Ok(Some(Kind::Int(value)));
        }
        return integer(text, text.parse().ok()).map(Some);
    }
    let numeric =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    Ok(if text.bytes().all(numeric) { text.parse().ok().map(Kind::Float) } else { None })
}

fn integer(text: &str, value: Option<u64>) -> Result<Kind, Unfit> {
    let value = value.ok_or_else(|| Unfit {
        message: format!("the number {text} does not fit 64 bits"),
        help: "put it in quotes to keep it as text",
    })?;
    Ok(i64::try_from(value).map_or(Kind::Large(value), Kind::Int))
}
