//! What `--payload` and `--set` lay over a playbook's workload.

use std::path::Path;

use noetl_model::{Map, Value};

use super::document;
use crate::failure::{Failure, Kind};

/// The payload file's object with each `--set` laid over it.
pub(super) fn read(file: Option<&Path>, set: &[String]) -> Result<Map, Failure> {
    let mut payload = match file {
        Some(path) => object(path)?,
        None => Map::new(),
    };
    for assignment in set {
        let Some((key, value)) = assignment.split_once('=') else {
            let message = format!("--set takes KEY=VALUE, got '{assignment}'");
            return Err(Failure::new(Kind::User, message));
        };
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let message = format!("--set takes a key such as 'who' or 'limits.max', got '{key}'");
            return Err(Failure::new(Kind::User, message));
        }
        place(&mut payload, key, typed(value));
    }
    Ok(payload)
}

fn object(path: &Path) -> Result<Map, Failure> {
    let document = document::read(path)?;
    let wrong = |what: String| {
        Failure::new(Kind::User, format!("the payload {} {what}", document.name))
            .hint("a payload is a JSON object such as {\"who\": \"Ada\"}")
    };
    match serde_json::from_str(&document.text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(wrong("is not a JSON object".into())),
        Err(error) => Err(wrong(format!("is not JSON: {error}"))),
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
    fn what_is_no_assignment_is_named() {
        let failure = read(None, &["who".to_owned()]).unwrap_err();
        assert_eq!(failure.text(), "--set takes KEY=VALUE, got 'who'");
    }
}
