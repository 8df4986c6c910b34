//! Canonical text of a JSON value: sorted keys, no spaces, one form for every number.
//!
//! Checksums cover these bytes, so this module writes them rather than a library, whose form of a
//! float has changed between releases before.

use std::fmt::Write;

use noetl_model::placeholder::without_tags;

use crate::replay::meta::Value;

/// Returns the canonical text of a value.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// Writes a value. Does not fail, because the writers in use do not fail.
pub(super) fn write_value(out: &mut impl Write, value: &Value) {
    match value {
        Value::Null => put(out, "null"),
        Value::Bool(true) => put(out, "true"),
        Value::Bool(false) => put(out, "false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            put(out, "[");
            for (place, item) in items.iter().enumerate() {
                put(out, if place == 0 { "" } else { "," });
                write_value(out, item);
            }
            put(out, "]");
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            // Strings compare by their UTF-8 bytes.
            fields.sort_unstable_by_key(|(key, _)| *key);
            put(out, "{");
            for (place, (key, item)) in fields.into_iter().enumerate() {
                put(out, if place == 0 { "" } else { "," });
                write_string(out, key);
                put(out, ":");
                write_value(out, item);
            }
            put(out, "}");
        }
    }
}

/// Writes a string. Escapes quotes, backslashes, and control characters, and nothing else.
pub(super) fn write_string(out: &mut impl Write, text: &str) {
    // Checksums cover the text shown to users, without secret tags.
    let shown = without_tags(text);
    let text = &*shown;
    put(out, "\"");
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        put(out, &text[plain..at]);
        plain = at + 1;
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            put(out, escape);
        }
    }
    put(out, &text[plain..]);
    put(out, "\"");
}

/// Writes a number: integers in plain decimal, other numbers as [`write_float`] does.
pub(super) fn write_number(out: &mut impl Write, number: &serde_json::Number) {
    if let Some(integer) = number.as_i64() {
        let _ = write!(out, "{integer}");
    } else if let Some(integer) = number.as_u64() {
        let _ = write!(out, "{integer}");
    } else {
        write_float(out, number.as_f64().unwrap_or_default());
    }
}

/// Decimal exponents of floats that are written without an exponent.
const PLAIN_EXPONENTS: std::ops::RangeInclusive<i32> = -5..=15;

/// Writes the shortest digits that parse to the same float. From 0.00001 to below 10^16, they have
/// a decimal point and at least one digit after it. Outside that range they have an exponent with
/// an explicit sign.
fn write_float(out: &mut impl Write, float: f64) {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    put(out, sign);
    if !PLAIN_EXPONENTS.contains(&exponent) {
        let plus = if exponent > 0 { "+" } else { "" };
        let _ = write!(out, "{digits}e{plus}{exponent}");
        return;
    }
    let digits: String = digits.chars().filter(|digit| *digit != '.').collect();
    // Inserts the decimal point after `exponent + 1` digits; zeros fill the rest.
    match usize::try_from(exponent) {
        Err(_) => {
            put(out, "0.");
            (exponent + 1..0).for_each(|_| put(out, "0"));
            put(out, &digits);
        }
        Ok(exponent) if digits.len() <= exponent + 1 => {
            put(out, &digits);
            (digits.len()..exponent + 1).for_each(|_| put(out, "0"));
            put(out, ".0");
        }
        Ok(exponent) => {
            let (whole, rest) = digits.split_at(exponent + 1);
            put(out, whole);
            put(out, ".");
            put(out, rest);
        }
    }
}

pub(super) fn put(out: &mut impl Write, text: &str) {
    // The only writers are strings and hashes, which never fail.
    let _ = out.write_str(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_have_a_canonical_form() {
        for (float, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (0.1, "0.1"),
            (0.001_25, "0.00125"),
            (0.000_01, "0.00001"),
            (0.000_012_5, "0.0000125"),
            (0.000_009_999, "9.999e-6"),
            (0.000_001, "1e-6"),
            (1e15, "1000000000000000.0"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (-1.25e16, "-1.25e+16"),
            (1.5e-7, "1.5e-7"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (2.0_f64.powi(53), "9007199254740992.0"),
        ] {
            assert_eq!(super::text(&json!(float)), text);
        }
    }

    #[test]
    fn integers_are_plain() {
        assert_eq!(text(&json!(i64::MIN)), "-9223372036854775808");
        assert_eq!(text(&json!(u64::MAX)), "18446744073709551615");
    }

    #[test]
    fn canonical_json_escapes_only_required_characters() {
        let value = json!("\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é\u{2028}😀");
        let text = text(&value);
        assert_eq!(text, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}é\u{2028}😀\"");
    }

    #[test]
    fn keys_are_sorted_by_their_bytes_at_every_depth() {
        let value = json!({"é": 1, "z": {"b": [], "a": {}}, "Z": [{"y": 1, "x": 2}], "": null});
        assert_eq!(text(&value), r#"{"":null,"Z":[{"x":2,"y":1}],"z":{"a":{},"b":[]},"é":1}"#);
    }
}
