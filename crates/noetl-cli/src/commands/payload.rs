//! What `--payload` and `--set` lay over a playbook's workload.

use std::path::Path;

use noetl_model::{Map, Value};

use super::document;
use crate::failure::{Failure, Kind};

/// How deep a payload may nest: as deep as a step's result. What is deeper could be written to the
/// log, but not be read from it.
const DEPTH_MAX: usize = 100;

/// The payload file's object with each `--set` laid over it.
pub(super) fn read(file: Option<&Path>, set: &[String]) -> Result<Map, Failure> {
    let payload = match file {
        Some(path) => object(path)?,
        None => Map::new(),
    };
    laid(payload, set)
}

/// The same where the object itself may be given, too.
pub(super) fn given(payload: Option<&str>, set: &[String]) -> Result<Map, Failure> {
    match payload {
        Some(text) if text.trim_start().starts_with('{') => {
            laid(parsed("in --payload", text)?, set)
        }
        other => read(other.map(Path::new), set),
    }
}

/// An object with each `--set` laid over it.
pub(super) fn laid(mut payload: Map, set: &[String]) -> Result<Map, Failure> {
    for assignment in set {
        let Some((key, value)) = assignment.split_once('=') else {
            let message = format!("--set takes KEY=VALUE, got '{assignment}'");
            return Err(Failure::new(Kind::User, message));
        };
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let message = format!("--set takes a key such as 'who' or 'limits.max', got '{key}'");
            return Err(Failure::new(Kind::User, message));
        }
        let value = typed(value);
        if key.split('.').count() + depth(&value) > DEPTH_MAX {
            return Err(too_deep(format!("--set {key:.40}")));
        }
        place(&mut payload, key, value);
    }
    Ok(payload)
}

fn object(path: &Path) -> Result<Map, Failure> {
    let document = document::read(path)?;
    parsed(&document.name, &document.text)
}

fn parsed(name: &str, text: &str) -> Result<Map, Failure> {
    let wrong = |what: String| {
        Failure::new(Kind::User, format!("the payload {name} {what}"))
            .hint("a payload is a JSON object such as {\"who\": \"Ada\"}")
    };
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) if depth(&value) > DEPTH_MAX => {
            Err(too_deep(format!("the payload {name}")))
        }
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong("is not a JSON object".into())),
        Err(error) => Err(wrong(format!("is not JSON: {error}"))),
    }
}

fn too_deep(what: String) -> Failure {
    Failure::new(Kind::User, format!("{what} nests more than {DEPTH_MAX} levels deep"))
}

/// How many lists and maps are in each other. JSON's reader has a limit, so this ends.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// What reads as JSON is JSON, anything else is text.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn place(payload: &mut Map, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            payload.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = payload.entry(first).or_insert(Value::Null);
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            place(below.as_object_mut().expect("made an object just above"), rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(assignments: &[&str]) -> Value {
        let assignments: Vec<String> = assignments.iter().map(|&text| text.to_owned()).collect();
        Value::Object(read(None, &assignments).unwrap())
    }

    #[test]
    fn values_keep_the_type_they_are_written_in() {
        assert_eq!(
            set(&["n=3", "zip=00501", "on=true", "who=Ada", "list=[1,2]", "empty="]),
            json!({"n": 3, "zip": "00501", "on": true, "who": "Ada", "list": [1, 2], "empty": ""})
        );
    }

    #[test]
    fn dotted_keys_reach_into_maps() {
        assert_eq!(set(&["a.b=1", "a.c=2"]), json!({"a": {"b": 1, "c": 2}}));
    }

    #[test]
    fn what_the_log_could_not_read_back_is_refused() {
        let refused = |assignment: String| read(None, &[assignment]).unwrap_err().text();
        let keys = vec!["a"; 60_000].join(".");
        let shown = &keys[..40];
        assert_eq!(
            refused(format!("{keys}=1")),
            format!("--set {shown} nests more than 100 levels deep")
        );
        let list = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(refused(format!("a={list}")), "--set a nests more than 100 levels deep");
        assert!(read(None, &[format!("a={}", &list[1..199])]).is_ok());
    }

    #[test]
    fn what_is_no_assignment_is_named() {
        let failure = read(None, &["who".to_owned()]).unwrap_err();
        assert_eq!(failure.text(), "--set takes KEY=VALUE, got 'who'");
    }
}
