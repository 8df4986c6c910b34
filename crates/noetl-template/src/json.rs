//! Conversion between JSON and template values, and their text form.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use serde_json::{Map, Number, Value};

use super::data::Data;
use super::error::{EvalError, RenderError, shorten};
use super::limit::{DEPTH_MAX, OutputBudget, too_deep};

/// Converts a JSON value by copying it.
pub fn from_json(value: &Value) -> Data {
    match value {
        Value::Null => Data::from(()),
        Value::Bool(value) => Data::from(*value),
        Value::Number(value) => number(value),
        Value::String(value) => Data::from(value.as_str()),
        Value::Array(items) => items.iter().map(from_json).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            Data::from_pairs(map.iter().map(|(key, value)| (key.as_str(), from_json(value))))
        }
    }
}

/// Converts a JSON value without copying its texts.
pub fn from_json_owned(value: Value) -> Data {
    match value {
        Value::Null => Data::from(()),
        Value::Bool(value) => Data::from(value),
        Value::Number(value) => number(&value),
        Value::String(value) => Data::from(value),
        Value::Array(items) => items.into_iter().map(from_json_owned).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            Data::from_pairs(map.into_iter().map(|(key, value)| (key, from_json_owned(value))))
        }
    }
}

/// Converts a value to JSON. Undefined becomes null, and keys that are not strings become text.
///
/// # Errors
///
/// Returns an error for values that JSON cannot represent (NaN, infinities, bytes, integers beyond
/// 64 bits) and for values that exceed the limits of a rendering.
pub fn to_json(value: &Data) -> Result<Value, RenderError> {
    OutputBudget::full().json(value).map_err(|fault| fault.in_template(&show(value)))
}

/// Bytes counted per JSON value, in addition to its text.
const BYTES_PER_VALUE: usize = 8;

impl OutputBudget {
    /// Converts a rendered value to JSON within the output budget.
    pub(super) fn json(&mut self, value: &Data) -> Result<serde_json::Value, EvalError> {
        convert(value, self, DEPTH_MAX)
    }
}

fn convert(value: &Data, room: &mut OutputBudget, depth: usize) -> Result<Value, EvalError> {
    room.take(BYTES_PER_VALUE)?;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Value::Null),
        ValueKind::Bool => Ok(Value::Bool(value.is_true())),
        ValueKind::Number => json_number(value),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            room.take(text.len())?;
            Ok(Value::String(text.to_owned()))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
            let mut items = Vec::with_capacity(value.len().unwrap_or(0).min(1024));
            for item in value.try_iter()?.checked() {
                items.push(convert(&item?, room, depth)?);
            }
            Ok(Value::Array(items))
        }
        ValueKind::Map => convert_map(value, room, depth),
        ValueKind::Bytes => Err(EvalError::new("bytes have no JSON form; decode them to text")),
        ValueKind::Plain | ValueKind::Invalid => {
            Err(EvalError::new(format!("{value} has no JSON form")))
        }
        other => Err(EvalError::new(format!("a value of type {other} has no JSON form"))),
    }
}

fn convert_map(value: &Data, room: &mut OutputBudget, depth: usize) -> Result<Value, EvalError> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let mut map = Map::new();
    let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
    for (key, item) in pairs.into_iter().flatten() {
        let key = text(&key)?.into_owned();
        room.take(key.len())?;
        map.insert(key, convert(&item, room, depth)?);
    }
    Ok(Value::Object(map))
}

fn number(number: &Number) -> Data {
    match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => Data::from(value),
        (None, Some(value)) => Data::from(value),
        (None, None) => Data::from(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn json_number(value: &Data) -> Result<Value, EvalError> {
    if value.is_integer() {
        if let Ok(integer) = i64::try_from(value.clone()) {
            return Ok(Value::Number(integer.into()));
        }
        return u64::try_from(value.clone()).map(|integer| Value::Number(integer.into())).map_err(
            |_| EvalError::new(format!("integer overflow: {value} does not fit 64 bits")),
        );
    }
    f64::try_from(value.clone())
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
        .ok_or_else(|| EvalError::new(format!("{value} is not a JSON number")))
}

/// Returns the text form of a value within a text.
///
/// Null and undefined are empty, so that an optional part leaves no text. Lists and maps are JSON
/// text, so a null inside them is `null`.
pub(super) fn text(value: &Data) -> Result<Cow<'_, str>, EvalError> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Cow::Borrowed("")),
        ValueKind::Bool if value.is_true() => Ok(Cow::Borrowed("true")),
        ValueKind::Bool => Ok(Cow::Borrowed("false")),
        ValueKind::String => Ok(Cow::Borrowed(value.as_str().unwrap_or_default())),
        _ => OutputBudget::full().json(value).map(|value| Cow::Owned(value.to_string())),
    }
}

/// Formats a value for a message: JSON, shortened.
pub(super) fn show(value: &Data) -> String {
    const CHARS_SHOWN: usize = 80;
    let shown = if value.is_undefined() {
        "undefined".to_owned()
    } else {
        match OutputBudget::full().json(value) {
            Ok(value) => value.to_string(),
            Err(_) => format!("a {}", value.kind()),
        }
    };
    shorten(&shown, CHARS_SHOWN)
}
