//! Encodes values for Postgres, in the text format of each type.
//!
//! The server reports the type of each parameter. A value is written in the format of that type, so
//! that `"2024-01-01"` can be a date and `[1, 2]` an array or a document.

use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use noetl_model::Value;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::config::plain;
use crate::sql::SqlCell;

type EncodeError = Box<dyn Error + Sync + Send>;

#[derive(Debug)]
pub(crate) struct Param<'a>(pub(crate) &'a Value);

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, EncodeError> {
        match text_of(self.0, ty)? {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A cell of another database as a parameter.
#[derive(Debug)]
pub(crate) struct CellParam<'a>(pub(crate) &'a SqlCell);

impl ToSql for CellParam<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, EncodeError> {
        match self.0 {
            SqlCell::Value(value) => Param(value).to_sql(ty, out),
            SqlCell::Bytes(bytes) => {
                out.extend_from_slice(bytes_text(bytes, ty).as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Encodes bytes for a column: base64 for text columns, hex for `bytea`.
fn bytes_text(bytes: &[u8], ty: &Type) -> String {
    match *ty == Type::BYTEA {
        true => hex(bytes),
        false => STANDARD.encode(bytes),
    }
}

/// Formats a value in the server's text format. `None` is null.
fn text_of(value: &Value, ty: &Type) -> Result<Option<String>, EncodeError> {
    if let Kind::Domain(inner) = ty.kind() {
        return text_of(value, inner);
    }
    Ok(Some(match (value, ty.kind()) {
        (Value::Null, _) => return Ok(None),
        (Value::Array(items), Kind::Array(element)) => array(items, element)?,
        _ if *ty == Type::JSON || *ty == Type::JSONB => document(value),
        (Value::String(text), _) if *ty == Type::BYTEA => bytes(text)?,
        (value, _) => plain(value),
    }))
}

/// Formats a JSON document. A text that is valid JSON is used unchanged.
fn document(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
            text.clone()
        }
        value => value.to_string(),
    }
}

fn bytes(text: &str) -> Result<String, EncodeError> {
    if text.starts_with("\\x") {
        return Ok(text.to_owned());
    }
    let bytes = STANDARD.decode(text).map_err(|_| "bytes are given in base64 or as '\\x…'")?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("\\x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn array(items: &[Value], element: &Type) -> Result<String, EncodeError> {
    let mut text = String::from("{");
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        match item {
            // An inner list is another dimension of the same array.
            Value::Array(items) if *element != Type::JSON && *element != Type::JSONB => {
                text.push_str(&array(items, element)?);
            }
            item => match text_of(item, element)? {
                None => text.push_str("null"),
                Some(item) => {
                    text.push('"');
                    for letter in item.chars() {
                        if matches!(letter, '"' | '\\') {
                            text.push('\\');
                        }
                        text.push(letter);
                    }
                    text.push('"');
                }
            },
        }
    }
    text.push('}');
    Ok(text)
}

/// Writes one field of a `copy` in text format, for a column of this type.
pub(crate) fn copy_field(cell: &SqlCell, ty: &Type, out: &mut BytesMut) -> Result<(), EncodeError> {
    let text = match cell {
        SqlCell::Value(value) => text_of(value, ty)?,
        SqlCell::Bytes(bytes) => Some(bytes_text(bytes, ty)),
    };
    let Some(text) = text else {
        out.extend_from_slice(b"\\N");
        return Ok(());
    };
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => out.extend_from_slice(&[byte]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_take_the_form_of_their_type() {
        let check = |value: Value, ty: &Type, expected: Option<&str>| {
            let text = text_of(&value, ty).map_err(|error| error.to_string());
            assert_eq!(text, Ok(expected.map(str::to_owned)), "{value} as {ty}");
        };
        check(json!(null), &Type::TEXT, None);
        check(json!(5), &Type::INT4, Some("5"));
        check(json!("5"), &Type::INT4, Some("5"));
        check(json!(true), &Type::BOOL, Some("true"));
        check(json!({"a": 1}), &Type::TEXT, Some("{\"a\":1}"));
        check(json!([1, null, "a\"b\\"]), &Type::TEXT_ARRAY, Some(r#"{"1",null,"a\"b\\"}"#));
        check(json!([[1, 2], [3, 4]]), &Type::INT4_ARRAY, Some(r#"{{"1","2"},{"3","4"}}"#));
        check(json!([[1], {}]), &Type::JSONB_ARRAY, Some(r#"{"[1]","{}"}"#));
        check(json!("{1,2}"), &Type::INT4_ARRAY, Some("{1,2}"));
        check(json!("{\"a\": 1}"), &Type::JSONB, Some("{\"a\": 1}"));
        check(json!("a"), &Type::JSONB, Some("\"a\""));
        check(json!([1]), &Type::JSON, Some("[1]"));
        check(json!("AP8="), &Type::BYTEA, Some("\\x00ff"));
        check(json!("\\x00"), &Type::BYTEA, Some("\\x00"));
        assert!(text_of(&json!("no base64!"), &Type::BYTEA).is_err());
    }

    #[test]
    fn copied_fields_cannot_break_their_line() {
        let mut out = BytesMut::new();
        copy_field(&"a\tb\nc\\d\r".into(), &Type::TEXT, &mut out).unwrap();
        copy_field(&SqlCell::NULL, &Type::TEXT, &mut out).unwrap();
        copy_field(&SqlCell::Bytes(vec![1]), &Type::BYTEA, &mut out).unwrap();
        assert_eq!(&out[..], b"a\\tb\\nc\\\\d\\r\\N\\\\x01");
    }
}
