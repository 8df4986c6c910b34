//! Lookups in `meta`, which any client may have written.
//!
//! A null counts as absent. Text lookups accept any value; integer lookups accept only integers.

pub(super) use noetl_model::{Map, Value};

use super::canonical;

/// Returns the value at this key, unless it is null.
pub(super) fn non_null<'a>(fields: &'a Map, key: &str) -> Option<&'a Value> {
    fields.get(key).filter(|value| !value.is_null())
}

/// Returns the object at this key.
pub(super) fn object<'a>(fields: &'a Map, key: &str) -> Option<&'a Map> {
    non_null(fields, key)?.as_object()
}

/// Returns the value at this key as text: a text as it is, other values as JSON.
pub(super) fn text(fields: &Map, key: &str) -> Option<String> {
    let value = non_null(fields, key)?;
    Some(match value {
        Value::String(text) => text.clone(),
        other => canonical::text(other),
    })
}

/// Returns the value of the first of these keys that has one, as text.
pub(super) fn first_text(fields: &Map, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| text(fields, key))
}

/// Returns the integer at this key. A text of digits is not an integer.
pub(super) fn integer(fields: &Map, key: &str) -> Option<i64> {
    non_null(fields, key)?.as_i64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_but_null_converts_to_text() {
        let Value::Object(fields) = json!({
            "text": "a", "empty": "", "float": 1.5, "whole": 3.0, "large": u64::MAX, "yes": true,
            "list": [1, {"b": 1, "a": null}], "null": null,
        }) else {
            panic!("an object")
        };
        let text_of = |key| text(&fields, key);
        assert_eq!(text_of("text").as_deref(), Some("a"));
        assert_eq!(text_of("empty").as_deref(), Some(""));
        assert_eq!(text_of("float").as_deref(), Some("1.5"));
        assert_eq!(text_of("whole").as_deref(), Some("3.0"));
        assert_eq!(text_of("large").as_deref(), Some("18446744073709551615"));
        assert_eq!(text_of("yes").as_deref(), Some("true"));
        assert_eq!(text_of("list").as_deref(), Some(r#"[1,{"a":null,"b":1}]"#));
        assert_eq!(text_of("null"), None);
        assert_eq!(text_of("missing"), None);
        assert_eq!(first_text(&fields, &["null", "yes", "text"]).as_deref(), Some("true"));
    }

    #[test]
    fn only_integers_convert_to_integers() {
        let Value::Object(fields) =
            json!({"n": -3, "text": "3", "float": 3.0, "huge": u64::MAX, "null": null})
        else {
            panic!("an object")
        };
        assert_eq!(integer(&fields, "n"), Some(-3));
        for key in ["text", "float", "huge", "null", "missing"] {
            assert_eq!(integer(&fields, key), None, "{key}");
        }
    }
}
