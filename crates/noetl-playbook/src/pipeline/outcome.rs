//! Results of tasks and pipelines.

use noetl_model::Failure;
use noetl_model::scope::TaskResult;
use serde_json::{Map, Value};

use crate::tool::Selection;

/// Adds the selected fields to a result. Skips missing fields, and leaves a result that is not an
/// object unchanged.
pub fn select(data: &mut Value, selections: &[Selection]) {
    let picked: Vec<(String, Value)> = selections
        .iter()
        .filter_map(|selection| {
            let selected = selection.path.iter().try_fold(&*data, |value, key| step(value, key));
            Some((selection.name.to_string(), selected?.clone()))
        })
        .collect();
    if let Value::Object(map) = data {
        map.extend(picked);
    }
}

/// Returns the value of an object key or list index. A negative index counts from the end.
fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(key),
        Value::Array(items) => {
            let place: i64 = key.parse().ok()?;
            let place = match usize::try_from(place) {
                Ok(place) => place,
                Err(_) => items.len().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
            };
            items.get(place)
        }
        _ => None,
    }
}

/// Returns the value of a failed task as other tasks see it: the tool's details, and the failure as
/// `error`.
pub fn failed_value(failure: &Failure) -> Value {
    let mut result = details(failure);
    result.insert("status".to_owned(), "error".into());
    result.insert("ok".to_owned(), false.into());
    result.insert("error".to_owned(), error_value(failure));
    Value::Object(result)
}

/// Returns a failure in the form that templates see as `error`.
fn error_value(failure: &Failure) -> Value {
    let mut error = details(failure);
    error.insert("kind".to_owned(), failure.kind.as_str().into());
    error.insert("message".to_owned(), failure.message.as_str().into());
    error.insert("retryable".to_owned(), failure.retryable.into());
    Value::Object(error)
}

fn details(failure: &Failure) -> Map<String, Value> {
    match failure.details.as_deref() {
        Some(Value::Object(details)) => details.clone(),
        _ => Map::new(),
    }
}

/// Merges the results of tasks that all succeeded, given by label in the order they ran.
pub fn merged_result(answers: Vec<(String, Value)>) -> Value {
    let left =
        |(label, data): (String, Value)| TaskResult { name: label.into(), data, failed: false };
    merged(answers.into_iter().map(left).collect())
}

/// Merges the results of a pipeline's tasks, given in the order they ran. Returns the data of a
/// single task unchanged, and otherwise an object.
///
/// Objects among the results are merged at the top level, later ones over earlier ones, so that a
/// field can be read without its task. An accepted failure is available only under its label,
/// because the pipeline itself did not fail.
pub fn merged(mut left: Vec<TaskResult>) -> Value {
    if left.len() == 1
        && let Some(only) = left.pop()
    {
        return only.data;
    }
    let mut merged = Map::new();
    for TaskResult { data, failed, .. } in &left {
        if let (Value::Object(map), false) = (data, failed) {
            merged.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }
    for TaskResult { name, data, .. } in left {
        merged.entry(&*name).or_insert(data);
    }
    Value::Object(merged)
}
