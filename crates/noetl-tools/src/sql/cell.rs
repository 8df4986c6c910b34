//! A value of a row.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of a row: JSON, or bytes, which JSON cannot represent.
///
/// Bytes stay bytes in a transfer between databases, and become base64 in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum SqlCell {
    /// A value that JSON can represent.
    Value(Value),
    /// A `bytea` or a `blob`.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    Bytes(Vec<u8>),
}

fn to_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

impl SqlCell {
    pub(crate) const NULL: Self = Self::Value(Value::Null);

    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
        }
    }
}

impl<T: Into<Value>> From<T> for SqlCell {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// Conversion of numbers. A float that JSON cannot represent becomes text, such as `NaN`.
impl SqlCell {
    pub(crate) fn float(number: f64) -> Self {
        match serde_json::Number::from_f64(number) {
            Some(number) => Self::Value(Value::Number(number)),
            None if number.is_nan() => "NaN".into(),
            None if number > 0.0 => "Infinity".into(),
            None => "-Infinity".into(),
        }
    }

    /// Converts a decimal number: to a JSON number if that is exact, else to its text.
    pub(crate) fn decimal(text: String) -> Self {
        if let Ok(whole) = text.parse::<i64>() {
            return whole.into();
        }
        if let Ok(whole) = text.parse::<u64>() {
            return whole.into();
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() && is_same(&text, float) => Self::float(float),
            _ => text.into(),
        }
    }
}

/// Returns `true` if the shortest form of `float` has the same digits as the decimal `text`.
fn is_same(text: &str, float: f64) -> bool {
    fn digits(text: &str) -> (bool, &str, &str) {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        (negative, whole.trim_start_matches('0'), fraction.trim_end_matches('0'))
    }
    // Rust prints the shortest digits that parse to the same float, and never an exponent.
    digits(text) == digits(&float.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decimal_is_a_number_only_without_loss_of_precision() {
        let check = |text: &str, expected: Value| {
            assert_eq!(SqlCell::decimal(text.to_owned()).into_value(), expected, "{text}");
        };
        check("5", json!(5));
        check("-5", json!(-5));
        check("18446744073709551615", json!(u64::MAX));
        check("18446744073709551616", json!("18446744073709551616"));
        check("0.1", json!(0.1));
        check("1.50", json!(1.5));
        check("-0.25", json!(-0.25));
        check("0.12345678901234567890", json!("0.12345678901234567890"));
        check("NaN", json!("NaN"));
    }

    #[test]
    fn values_without_a_json_form_become_text() {
        assert_eq!(SqlCell::float(f64::NAN), "NaN".into());
        assert_eq!(SqlCell::float(f64::NEG_INFINITY), "-Infinity".into());
        assert_eq!(SqlCell::Bytes(vec![0, 255]).into_value(), json!("AP8="));
    }
}
