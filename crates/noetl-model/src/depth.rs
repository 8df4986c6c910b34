//! Nesting limit of JSON values.

use crate::Value;

/// Maximum nesting depth of a value.
///
/// JSON parsers stop at 127 levels, and a row wraps a value in a few levels of its own. A deeper
/// value could be written and never read back.
pub const DEPTH_MAX: usize = 100;

/// Returns `true` if arrays and objects in `value` nest more than `levels` deep.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1))
        }
        Value::Object(map) => {
            levels == 0 || map.values().any(|item| is_deeper_than(item, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_lists_and_maps() {
        let value = serde_json::json!([{"a": [1]}]);
        assert!(is_deeper_than(&value, 2));
        assert!(!is_deeper_than(&value, 3));
        assert!(!is_deeper_than(&serde_json::json!("x"), 0));
    }
}
