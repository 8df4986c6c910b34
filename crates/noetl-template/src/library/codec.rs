//! Filters that encode and decode values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, filters};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;
use sha2::{Sha256, Sha512};

use super::{Cost, Library, argument, fail};
use crate::data::Data;
use crate::json::{from_json_owned, show, text};
use crate::limit::{OutputBudget, check_text};

pub(super) fn register(library: &mut Library) {
    for name in ["tojson", "to_json"] {
        library.filter(name, to_json);
    }
    for name in ["fromjson", "from_json"] {
        library.costly(name, Cost::Parse, from_json);
    }
    library.filter("b64encode", |v: &Data| Ok::<_, Error>(STANDARD.encode(text(v)?.as_bytes())));
    library.filter("b64decode", b64decode);
    library.filter("hash", |v: &Data, algorithm: Option<&str>| {
        hash(&text(v)?, algorithm.unwrap_or("sha256"))
    });
    library.filter("md5", |v: &Data| hash(&text(v)?, "md5"));
    library.filter("sha256", |v: &Data| hash(&text(v)?, "sha256"));
    library.filter("urlencode", urlencode);
    library.filter("urldecode", |v: &Data| urldecode(&text(v)?));
    library.filter("sql", |v: &Data| sql(v));
}

/// Serializes a value as compact JSON in key order, or indented if requested.
fn to_json(value: &Data, indent: Option<Data>, named: Kwargs) -> Result<String, Error> {
    /// Maximum indentation width in spaces.
    const INDENT_MAX: usize = 16;
    let indent = argument(indent, &named, "indent")?;
    named.assert_all_used()?;
    let value = OutputBudget::full().json(value)?;
    let width = match indent {
        None => 0,
        Some(indent) if indent.is_none() => 0,
        Some(indent) if indent.kind() == ValueKind::Bool => 2 * usize::from(indent.is_true()),
        Some(indent) => usize::try_from(indent)?.min(INDENT_MAX),
    };
    if width == 0 {
        let compact = value.to_string();
        check_text(Some(compact.len()))?;
        return Ok(compact);
    }
    let margin = " ".repeat(width);
    let formatter = serde_json::ser::PrettyFormatter::with_indent(margin.as_bytes());
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match value.serialize(&mut serializer) {
        Ok(()) => {
            check_text(Some(bytes.len()))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        Err(error) => fail(error.to_string()),
    }
}

/// Parses JSON text. Returns values other than text unchanged.
fn from_json(value: &Data) -> Result<Data, Error> {
    let Some(text) = value.as_str() else {
        return Ok(value.clone());
    };
    match serde_json::from_str::<Value>(text) {
        Ok(value) => Ok(from_json_owned(value)),
        Err(error) => fail(format!("this is not JSON: {error}")),
    }
}

fn b64decode(value: &Data) -> Result<String, Error> {
    let encoded: String = text(value)?.split_whitespace().collect();
    match STANDARD.decode(encoded).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(_)) => fail("the decoded bytes are not UTF-8 text"),
        Err(error) => fail(format!("this is not base64: {error}")),
    }
}

fn hash(text: &str, algorithm: &str) -> Result<String, Error> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match algorithm {
        "md5" => Ok(hex(&Md5::digest(text))),
        "sha256" => Ok(hex(&Sha256::digest(text))),
        "sha512" => Ok(hex(&Sha512::digest(text))),
        other => fail(format!("unknown hash `{other}`; known are md5, sha256, sha512")),
    }
}

fn urlencode(value: &Data) -> Result<String, Error> {
    if value.kind() == ValueKind::Bool {
        return filters::urlencode(&Data::from(&*text(value)?));
    }
    // A map can contain a long text many times, so the total size must be checked.
    OutputBudget::full().json(value)?;
    filters::urlencode(value)
}

fn urldecode(text: &str) -> Result<String, Error> {
    // `percent_decode_str` passes on a `%` without two digits.
    let is_code = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(|rest| is_code(rest.as_bytes())) {
        return fail("a `%` is not followed by two hexadecimal digits");
    }
    match percent_decode_str(&text.replace('+', " ")).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => fail("the decoded bytes are not UTF-8 text"),
    }
}

/// Formats a value as an SQL literal: quoted text, a number, a boolean, `NULL`, or quoted JSON text
/// for a list or map.
fn sql(value: &Data) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok("NULL".to_owned()),
        ValueKind::Bool if value.is_true() => Ok("TRUE".to_owned()),
        ValueKind::Bool => Ok("FALSE".to_owned()),
        ValueKind::Number => Ok(text(value)?.into_owned()),
        _ => {
            let text = text(value)?;
            if text.contains('\0') {
                return fail(format!("{} holds a zero byte, which SQL text cannot", show(value)));
            }
            Ok(format!("'{}'", text.replace('\'', "''")))
        }
    }
}
