//! The second rendering: whatever looks like a template is one, and what comes out is read as JSON
//! where that is possible.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value as Data, ValueKind};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use super::told;

/// A value with all its texts rendered. Keys are not.
pub fn render(value: &Value, names: &Map<String, Value>) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains("{{") || text.contains("{%") => text_of(text, names),
        Value::Array(items) => items.iter().map(|item| render(item, names)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), render(value, names)?)))
            .collect::<Result<Map<_, _>, String>>()
            .map(Value::Object),
        plain => Ok(plain.clone()),
    }
}

fn text_of(text: &str, names: &Map<String, Value>) -> Result<Value, String> {
    let environment = environment();
    let names = Data::from_object(Falling(names.clone()));
    let made = environment.render_str(text, names.clone()).map_err(told)?;
    if let Ok(value) = serde_json::from_str(&made) {
        return Ok(value);
    }
    let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    if let Some(inner) = inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) {
        let again = format!("{{{{ ({inner}) | tojson }}}}");
        if let Ok(json) = environment.render_str(&again, names)
            && let Ok(value) = serde_json::from_str(&json)
        {
            return Ok(value);
        }
    }
    Ok(Value::String(made))
}

/// Whether a condition holds, as rules read it.
pub(super) fn holds(when: &Value, names: &Map<String, Value>) -> Result<bool, String> {
    Ok(match render(when, names)? {
        Value::Bool(answer) => answer,
        Value::Null => false,
        Value::String(text) => {
            !matches!(text.trim(), "" | "false" | "False" | "0" | "none" | "None" | "null")
        }
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) | Value::Object(_) => true,
    })
}

fn environment() -> Environment<'static> {
    let mut made = Environment::new();
    made.set_undefined_behavior(UndefinedBehavior::Chainable);
    made.add_filter("tojson", |value: Data| serde_json::to_string(&value).unwrap_or_default());
    made.add_filter("fromjson", |text: String| {
        serde_json::from_str::<Value>(&text)
            .map(|value| Data::from(Serde(value)))
            .unwrap_or_default()
    });
    made.add_filter("int", |value: Data| -> i64 {
        let text = value.to_string();
        #[expect(clippy::cast_possible_truncation, reason = "as the real one does")]
        let whole = text.trim().parse::<f64>().map(|number| number as i64);
        text.trim().parse().or(whole).unwrap_or(0)
    });
    made.add_filter("len", |value: Data| value.len().unwrap_or(0));
    made.add_filter("d", or_default);
    made.add_filter("default", or_default);
    made
}

fn or_default(value: Data, other: Option<Data>) -> Data {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => other.unwrap_or_else(|| Data::from("")),
        _ => value,
    }
}

/// A map that answers for its own `result` where it has none.
#[derive(Debug)]
struct Falling(Map<String, Value>);

fn falling(value: &Value) -> Data {
    match value {
        Value::Object(map) => Data::from_object(Falling(map.clone())),
        Value::Array(items) => Data::from(items.iter().map(falling).collect::<Vec<_>>()),
        plain => Data::from(Serde(plain)),
    }
}

impl Object for Falling {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        let key = key.as_str()?;
        match self.0.get(key) {
            Some(value) => Some(falling(value)),
            None if key == "result" => Some(Data::from_dyn_object(self.clone())),
            None => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|key| Data::from(key.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_comes_out_is_read_as_json() {
        let names = json!({"n": 5, "zip": "00501", "text": "12", "o": {"a": [1]}, "t": true});
        let Value::Object(names) = names else { panic!("a map") };
        for (template, expected) in [
            ("{{ n }}", json!(5)),
            ("{{ n }}{{ n }}", json!(55)),
            ("{{ zip }}", json!("00501")),
            ("{{ text }}", json!(12)),
            ("{{ o }}", json!({"a": [1]})),
            ("{{ o.result.a }}", json!([1])),
            ("{{ t }}", json!(true)),
            ("{{ gone.x.y }}", json!(null)),
            ("a {{ gone }}b", json!("a b")),
            ("plain 5", json!("plain 5")),
        ] {
            assert_eq!(render(&json!(template), &names), Ok(expected), "{template}");
        }
    }
}
