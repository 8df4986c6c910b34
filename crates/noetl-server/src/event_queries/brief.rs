//! Shortens events for clients that read whole logs.

use noetl_api::events::EventView;
use noetl_model::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Maximum length of a value as JSON text, in bytes. A longer object is shortened field by field;
/// any other longer value is replaced with null.
const LENGTH_MAX: usize = 400;
/// Maximum depth of nested objects that are shortened field by field.
const DEPTH: usize = 4;

/// Replaces large values with null, so that the key stays visible.
pub(crate) fn shorten(event: &mut EventView) {
    shorten_raw(&mut event.context);
    shorten_raw(&mut event.result);
    if let Some(Value::Object(meta)) = &mut event.meta {
        // Clients that need the trace read the complete event.
        meta.remove("trace");
        let meta = meta.values_mut();
        meta.for_each(|value| shorten_value(value, DEPTH));
    }
}

fn shorten_raw(raw: &mut Option<Box<RawValue>>) {
    let Some(text) = raw.as_ref().map(|raw| raw.get()).filter(|text| text.len() > LENGTH_MAX)
    else {
        return;
    };
    let Ok(mut value) = serde_json::from_str(text) else { return };
    shorten_value(&mut value, DEPTH);
    *raw = to_raw_value(&value).ok();
}

fn shorten_value(value: &mut Value, depth: usize) {
    if !is_long(value) {
        return;
    }
    match value {
        Value::Object(fields) if depth > 0 && fields.len() <= LENGTH_MAX => {
            fields.values_mut().for_each(|field| shorten_value(field, depth - 1));
        }
        _ => *value = Value::Null,
    }
}

fn is_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > LENGTH_MAX,
        Value::Array(_) | Value::Object(_) => {
            serde_json::to_string(value).is_ok_and(|text| text.len() > LENGTH_MAX)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shortened(value: Value) -> Value {
        let mut raw = Some(to_raw_value(&value).expect("raw"));
        shorten_raw(&mut raw);
        serde_json::from_str(raw.expect("a value").get()).expect("a value")
    }

    #[test]
    fn large_values_are_null_and_their_siblings_remain() {
        let long = "x".repeat(500);
        let given = json!({"context": {"next": {"taken": [{"step": "b"}]}, "error": {"kind": "timeout",
            "details": {"traceback": long}}}, "rows": vec![7; 300]});
        let wanted = json!({"context": {"next": {"taken": [{"step": "b"}]}, "error": {"kind": "timeout",
            "details": {"traceback": null}}}, "rows": null});
        assert_eq!(shortened(given), wanted);
        let small = json!({"data": {"a": [1, 2, {"b": null}]}});
        assert_eq!(shortened(small.clone()), small);
    }

    #[test]
    fn an_object_of_many_fields_or_of_many_levels_is_left_out() {
        let wide: serde_json::Map<String, Value> =
            (0..1000).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(shortened(json!({"wide": wide})), json!({"wide": null}));
        let deep = json!({"a": {"b": {"c": {"d": {"e": "x".repeat(500)}}}}});
        assert_eq!(shortened(deep), json!({"a": {"b": {"c": {"d": null}}}}));
    }
}
