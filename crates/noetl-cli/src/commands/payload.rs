//! Merges `--input`, `--payload`, and `--set` into a workload.

use std::path::Path;

use noetl_engine::merge;
use noetl_model::{Map, Value};

use super::document;
use crate::arguments::WorkloadArguments;
use crate::error::{CliError, ErrorKind};

/// Maximum nesting depth of a payload, equal to that of a step's result. A deeper value could be
/// written to the event log, but not be read back.
const DEPTH_MAX: usize = 100;

/// Returns the merged workload values, in increasing precedence: `--input`, `--payload`, each
/// `--set`.
pub(super) fn workload(arguments: &WorkloadArguments) -> Result<Map, CliError> {
    let WorkloadArguments { set, payload, input } = arguments;
    if is_stdin(input.as_deref()) && is_stdin(payload.as_deref()) {
        let message = "stdin holds --input or --payload, not both";
        return Err(CliError::new(ErrorKind::User, message).hint("name a file for one of them"));
    }
    let mut below = flag_object("--input", input.as_deref())?;
    merge(&mut below, &flag_object("--payload", payload.as_deref())?);
    let set: Vec<String> = set.iter().map(|one| without_prefix(one).to_owned()).collect();
    laid(below, &set)
}

/// Returns `true` if `--payload` or `--input` is read from stdin.
pub(super) fn reads_stdin(arguments: &WorkloadArguments) -> bool {
    is_stdin(arguments.payload.as_deref()) || is_stdin(arguments.input.as_deref())
}

fn is_stdin(argument: Option<&str>) -> bool {
    argument.is_some_and(|argument| document::is_stdin(Path::new(argument)))
}

/// Parses an inline JSON object, or reads one from a file.
fn flag_object(name: &str, text: Option<&str>) -> Result<Map, CliError> {
    match text {
        None => Ok(Map::new()),
        Some(text) if text.trim_start().starts_with('{') => parsed(&format!("in {name}"), text),
        Some(file) => object(Path::new(file)),
    }
}

/// Removes the optional `workload.` prefix of an assignment.
fn without_prefix(assignment: &str) -> &str {
    match assignment.strip_prefix("workload.") {
        // `workload.=1` has no key. It is kept as is, so that validation rejects it.
        Some(rest) if !rest.starts_with('=') => rest,
        _ => assignment,
    }
}

/// Returns an object with each `--set` assignment applied to it.
pub(super) fn laid(mut payload: Map, set: &[String]) -> Result<Map, CliError> {
    for assignment in set {
        let Some((key, value)) = assignment.split_once('=') else {
            let message = format!("--set takes KEY=VALUE, got '{assignment}'");
            return Err(CliError::new(ErrorKind::User, message));
        };
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let message = format!("--set takes a key such as 'who' or 'limits.max', got '{key}'");
            return Err(CliError::new(ErrorKind::User, message));
        }
        let value = typed(value);
        if key.split('.').count() + depth(&value) > DEPTH_MAX {
            return Err(too_deep(format!("--set {key:.40}")));
        }
        insert_at(&mut payload, key, value);
    }
    Ok(payload)
}

fn object(path: &Path) -> Result<Map, CliError> {
    let document = document::read(path)?;
    parsed(&document.name, &document.text)
}

fn parsed(name: &str, text: &str) -> Result<Map, CliError> {
    let wrong = |what: String| {
        CliError::new(ErrorKind::User, format!("the payload {name} {what}"))
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

fn too_deep(what: String) -> CliError {
    CliError::new(ErrorKind::User, format!("{what} nests more than {DEPTH_MAX} levels deep"))
}

/// Returns the nesting depth of lists and maps. The JSON parser limits the depth, so the recursion
/// is bounded.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Parses text as JSON, or returns it as a string if it is not JSON.
fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn insert_at(payload: &mut Map, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            payload.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let below = payload.entry(first).or_insert(Value::Null);
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            insert_at(below.as_object_mut().expect("made an object just above"), rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(input: Option<&str>, payload: Option<&str>, set: &[&str]) -> Result<Value, String> {
        let text = |text: &str| text.to_owned();
        let arguments = WorkloadArguments {
            set: set.iter().copied().map(text).collect(),
            payload: payload.map(text),
            input: input.map(text),
        };
        workload(&arguments).map(Value::Object).map_err(|failure| failure.text())
    }

    fn set(assignments: &[&str]) -> Value {
        read(None, None, assignments).unwrap()
    }

    #[test]
    fn set_overrides_payload_which_overrides_input() {
        let input = r#"{"a": {"x": 1, "y": 1}, "b": [1], "c": 1}"#;
        let payload = r#"{"a": {"y": 2, "z": 2}, "b": [2], "d": {"e": 2}}"#;
        assert_eq!(
            read(Some(input), Some(payload), &["a.z=3", "d=3"]),
            Ok(json!({"a": {"x": 1, "y": 2, "z": 3}, "b": [2], "c": 1, "d": 3}))
        );
        let both = read(Some("-"), Some("-"), &[]);
        assert_eq!(both, Err("stdin holds --input or --payload, not both".to_owned()));
    }

    #[test]
    fn a_key_may_start_with_workload() {
        assert_eq!(set(&["workload.a.b=1", "a.c=2"]), json!({"a": {"b": 1, "c": 2}}));
        assert_eq!(set(&["workload.workload.a=1", "workload=2"]), json!({"workload": 2}));
        assert_eq!(set(&["workload=2", "workload.workload.a=1"]), json!({"workload": {"a": 1}}));
        assert!(read(None, None, &["workload.=1"]).is_err());
    }

    #[test]
    fn values_have_the_type_of_their_literal() {
        assert_eq!(
            set(&["n=3", "zip=00501", "on=true", "who=Ada", "list=[1,2]", "empty="]),
            json!({"n": 3, "zip": "00501", "on": true, "who": "Ada", "list": [1, 2], "empty": ""})
        );
    }

    #[test]
    fn dotted_keys_set_nested_keys() {
        assert_eq!(set(&["a.b=1", "a.c=2"]), json!({"a": {"b": 1, "c": 2}}));
    }

    #[test]
    fn unreadable_payloads_are_rejected() {
        let refused = |assignment: String| read(None, None, &[&assignment]).unwrap_err();
        let keys = vec!["a"; 60_000].join(".");
        let shown = &keys[..40];
        assert_eq!(
            refused(format!("{keys}=1")),
            format!("--set {shown} nests more than 100 levels deep")
        );
        let list = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(refused(format!("a={list}")), "--set a nests more than 100 levels deep");
        assert!(read(None, None, &[&format!("a={}", &list[1..199])]).is_ok());
    }

    #[test]
    fn invalid_assignments_are_reported() {
        let error = read(None, None, &["who"]).unwrap_err();
        assert_eq!(error, "--set takes KEY=VALUE, got 'who'");
    }
}
