//! Marks turned back into what they stand for.

use std::collections::HashMap;

use noetl_model::{Map, Value};

use super::{Mark, marks_in};

/// The marks in a value, in its keys too.
pub fn collect(value: &Value, marks: &mut Vec<Mark>) {
    match value {
        Value::String(text) => marks.extend(marks_in(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, marks)),
        Value::Object(map) => {
            for (key, value) in map {
                marks.extend(marks_in(key));
                collect(value, marks);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts what is known of marks, by their names, in their places. A mark that is all of a text has its
/// own type; one that is not known stays.
pub fn replace(value: &mut Value, known: &HashMap<String, Value>) {
    match value {
        Value::String(text) => {
            let marks = marks_in(text);
            match marks.as_slice() {
                [] => {}
                [mark] if mark.range == (0..text.len()) => {
                    if let Some(secret) = known.get(&mark.name) {
                        *value = secret.clone();
                    }
                }
                marks => *text = replaced(text, marks, known),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, known)),
        Value::Object(map) => replace_in(map, known),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same in a map, its keys included.
pub fn replace_in(map: &mut Map, known: &HashMap<String, Value>) {
    map.values_mut().for_each(|value| replace(value, known));
    if map.keys().any(|key| !marks_in(key).is_empty()) {
        let entries = std::mem::take(map).into_iter();
        *map =
            entries.map(|(key, value)| (replaced(&key, &marks_in(&key), known), value)).collect();
    }
}

fn replaced(text: &str, marks: &[Mark], known: &HashMap<String, Value>) -> String {
    let (mut made, mut from) = (String::with_capacity(text.len()), 0);
    for mark in marks {
        made.push_str(&text[from..mark.range.start]);
        match known.get(&mark.name) {
            Some(Value::String(secret)) => made.push_str(secret),
            Some(other) => made.push_str(&other.to_string()),
            None => made.push_str(&text[mark.range.clone()]),
        }
        from = mark.range.end;
    }
    made.push_str(&text[from..]);
    made
}

/// The value at a dotted path; a key may hold dots itself.
pub fn at<'v>(data: &'v Map, path: &str) -> Option<&'v Value> {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_become_what_they_stand_for() {
        let mut value = json!({
            "whole": "«secret:pg.port»", "part": "a «secret:pg.password» b",
            "other": "«secret:gone.x»", "list": ["«secret:pg.password»"],
            "«secret:pg.password»": 1,
        });
        let mut marks = Vec::new();
        collect(&value, &mut marks);
        assert_eq!(marks.len(), 5);
        let known = HashMap::from([
            ("pg.port".to_owned(), json!(5432)),
            ("pg.password".to_owned(), json!("s3cret")),
        ]);
        replace(&mut value, &known);
        assert_eq!(
            value,
            json!({"whole": 5432, "part": "a s3cret b", "other": "«secret:gone.x»",
                   "list": ["s3cret"], "s3cret": 1})
        );
    }

    #[test]
    fn a_path_leads_into_maps_and_lists() {
        let data = json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3});
        let data = data.as_object().expect("a map");
        assert_eq!(at(data, "a.b.1.c"), Some(&json!(2)));
        assert_eq!(at(data, "x.y"), Some(&json!(3)));
        assert_eq!(at(data, "a.c"), None);
    }
}
