//! Decides which results stay in their event and which fields stay beside a reference.

use noetl_model::{Map, Value};

/// Maximum size of a result in its event, in bytes of JSON.
pub const INLINE_MAX: usize = 64 * 1024;

/// Maximum size in bytes of each field, and maximum number of fields, stored in the event beside a
/// reference, so conditions on small fields need not read the blob. Only top-level fields count.
const FIELD_BYTES_MAX: usize = 256;
const FIELDS_MAX: usize = 32;

/// Returns `true` if a result certainly fits into its event. If not, it has to be measured.
pub fn is_small(data: &Value) -> bool {
    fits(data, &mut INLINE_MAX.clone())
}

/// Returns `true` if the JSON of a value certainly fits into `left` bytes. Stops as soon as it may
/// not.
fn fits(value: &Value, left: &mut usize) -> bool {
    let cost = match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 26,
        // A character may be written as an escape of six.
        Value::String(text) => text.len() * 6 + 3,
        Value::Array(_) | Value::Object(_) => 2,
    };
    if cost > *left {
        return false;
    }
    *left -= cost;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            let key = key.len() * 6 + 4;
            let fits_key = key <= *left;
            *left = left.saturating_sub(key);
            fits_key && fits(item, left)
        }),
        _ => true,
    }
}

/// Returns the small fields of a large result, which are stored beside its reference.
pub fn small_fields(data: Value) -> Value {
    let Value::Object(map) = data else { return Value::Object(Map::new()) };
    let is_small = |value: &Value| match value {
        Value::String(text) => text.len() <= FIELD_BYTES_MAX,
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    let small = map
        .into_iter()
        .filter(|(key, value)| key.len() <= FIELD_BYTES_MAX && is_small(value))
        .take(FIELDS_MAX);
    Value::Object(small.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_certain_to_fit_skip_the_measurement() {
        for value in [json!(null), json!([1, 2.5, "x"]), json!({"a": {"b": [true]}})] {
            assert!(fits(&value, &mut INLINE_MAX.clone()));
        }
        assert!(!fits(&json!("x".repeat(INLINE_MAX)), &mut INLINE_MAX.clone()));
        assert!(!fits(&json!(vec![1; INLINE_MAX]), &mut INLINE_MAX.clone()));
    }

    #[test]
    fn small_fields_stay_beside_a_reference() {
        let data = json!({"rows": 7, "name": "x", "all": [1], "text": "y".repeat(300), "no": null});
        assert_eq!(small_fields(data), json!({"rows": 7, "name": "x", "no": null}));
        assert_eq!(small_fields(json!([1, 2])), json!({}));
    }
}
