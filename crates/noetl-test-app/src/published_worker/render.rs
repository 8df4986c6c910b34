//! Second rendering of the released worker: renders every text that looks like a template, and parses
//! the output as JSON if possible.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value as Data, ValueKind};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use super::error_text;

/// Renders every text in a value, but no keys.
pub fn render(value: &Value, names: &Map<String, Value>) -> Result<Value, String> {
    match value {
        Value::String(text) if text.contains("{{") || text.contains("{%") => {
            render_text(text, names)
        }
        Value::Array(items) => items.iter().map(|item| render(item, names)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| Ok((key.clone(), render(value, names)?)))
            .collect::<Result<Map<_, _>, String>>()
            .map(Value::Object),
        plain => Ok(plain.clone()),
    }
}

fn render_text(text: &str, names: &Map<String, Value>) -> Result<Value, String> {
    let environment = environment();
    let names = Data::from_object(ResultMap(names.clone()));
    let made = environment.render_str(text, names.clone()).map_err(error_text)?;
    if let Ok(value) = serde_json::from_str(&made) {
        return Ok(value);
    }
    let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    if let Some(inner) = inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) {
        let as_json = format!("{{{{ ({inner}) | tojson }}}}");
        if let Ok(json) = environment.render_str(&as_json, names)
            && let Ok(value) = serde_json::from_str(&json)
        {
            return Ok(value);
        }
    }
    Ok(Value::String(made))
}

/// Returns `true` if a condition of a policy rule holds. One that fails to render doesn't.
#[cfg(feature = "server")]
pub(super) fn holds(when: &Value, names: &Map<String, Value>) -> bool {
    let text = match when {
        Value::Bool(value) => return *value,
        Value::String(text) => text,
        _ => return false,
    };
    let names = Data::from_object(ResultMap(names.clone()));
    let rendered = environment().render_str(text, names).unwrap_or_default();
    !matches!(rendered.as_str(), "" | "false" | "False" | "0" | "none" | "None" | "null")
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
        #[expect(clippy::cast_possible_truncation, reason = "the released worker does the same")]
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

/// A map that returns itself for a missing key `result`.
#[derive(Debug)]
struct ResultMap(Map<String, Value>);

fn result_value(value: &Value) -> Data {
    match value {
        Value::Object(map) => Data::from_object(ResultMap(map.clone())),
        Value::Array(items) => Data::from(items.iter().map(result_value).collect::<Vec<_>>()),
        plain => Data::from(Serde(plain)),
    }
}

impl Object for ResultMap {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Data) -> Option<Data> {
        let key = key.as_str()?;
        match self.0.get(key) {
            Some(value) => Some(result_value(value)),
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
    fn rendered_text_is_parsed_as_json() {
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
