//! Replaces placeholders by the values they stand for.

use std::collections::HashMap;

use noetl_model::placeholder::{
    Placeholder, placeholders_in, remove_tags, remove_tags_in, without_tags,
};
use noetl_model::{Map, Value};

/// Collects the tagged placeholders in a value, including its keys.
pub fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => collect_text(text, texts),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => collect_map(map, texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Collects the tagged placeholders in a map.
pub fn collect_map(map: &Map, texts: &mut Vec<String>) {
    for (key, value) in map {
        collect_text(key, texts);
        collect(value, texts);
    }
}

fn collect_text(text: &str, texts: &mut Vec<String>) {
    let tagged = placeholders_in(text).into_iter().filter(|found| found.tag.is_some());
    texts.extend(tagged.map(|found| text[found.range].to_owned()));
}

/// Replaces placeholders by the values known for their exact text. A placeholder that is the whole
/// text becomes a value of its own type. All others lose their tag, which a tool does not need.
pub fn replace(value: &mut Value, known: &HashMap<String, Value>) {
    match value {
        Value::String(text) => {
            if let Some(secret) = known.get(text.as_str()) {
                *value = secret.clone();
            } else if let Some(replaced) = replaced(text, known) {
                *text = replaced;
            } else {
                remove_tags(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, known)),
        Value::Object(map) => replace_in(map, known),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces placeholders in a map, including its keys.
pub fn replace_in(map: &mut Map, known: &HashMap<String, Value>) {
    map.values_mut().for_each(|value| replace(value, known));
    if map.keys().any(|key| replaced(key, known).is_some()) {
        let entries = std::mem::take(map).into_iter();
        *map = entries.map(|(key, value)| (replaced(&key, known).unwrap_or(key), value)).collect();
    }
    remove_tags_in(map);
}

/// Returns a text with known placeholders replaced, or `None` if it has none.
fn replaced(text: &str, known: &HashMap<String, Value>) -> Option<String> {
    let is_known = |found: &Placeholder| known.contains_key(&text[found.range.clone()]);
    let found: Vec<Placeholder> = placeholders_in(text).into_iter().filter(is_known).collect();
    if found.is_empty() {
        return None;
    }
    let (mut made, mut from) = (String::with_capacity(text.len()), 0);
    for placeholder in found {
        made.push_str(&without_tags(&text[from..placeholder.range.start]));
        match known.get(&text[placeholder.range.clone()]) {
            Some(Value::String(secret)) => made.push_str(secret),
            Some(other) => made.push_str(&other.to_string()),
            None => {}
        }
        from = placeholder.range.end;
    }
    made.push_str(&without_tags(&text[from..]));
    Some(made)
}

/// Returns the value at a dotted path. A key may contain dots itself.
pub fn value_at<'v>(data: &'v Map, path: &str) -> Option<&'v Value> {
    if let Some(value) = data.get(path) {
        return Some(value);
    }
    let mut parts = path.split('.');
    let first = data.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use noetl_model::placeholder::{Tag, tagged};
    use serde_json::json;

    use super::*;

    fn text(alias: &str, field: &str) -> String {
        let tag = Tag { key: 1, mac: "0123456789abcdefghijkl".to_owned() };
        tagged(alias, field, &tag).expect("a placeholder")
    }

    #[test]
    fn known_placeholders_become_values_and_others_lose_their_tag() {
        let (port, password, gone) =
            (text("pg", "port"), text("pg", "password"), text("gone", "x"));
        let mut value = json!({
            "whole": port, "part": format!("a {password} b {gone}"), "other": gone,
            "list": [password], password.clone(): 1, "untagged": "«secret:pg.password»",
        });
        let mut texts = Vec::new();
        collect(&value, &mut texts);
        assert_eq!(texts.len(), 6);
        let known = HashMap::from([(port, json!(5432)), (password, json!("s3cret «secret:a.b»"))]);
        replace(&mut value, &known);
        let secret = "s3cret «secret:a.b»";
        assert_eq!(
            value,
            json!({"whole": 5432, "part": format!("a {secret} b «secret:gone.x»"),
                   "other": "«secret:gone.x»", "list": [secret],
                   "untagged": "«secret:pg.password»", secret: 1})
        );
    }

    #[test]
    fn a_path_leads_into_maps_and_lists() {
        let data = json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3});
        let data = data.as_object().expect("a map");
        assert_eq!(value_at(data, "a.b.1.c"), Some(&json!(2)));
        assert_eq!(value_at(data, "x.y"), Some(&json!(3)));
        assert_eq!(value_at(data, "a.c"), None);
    }
}
