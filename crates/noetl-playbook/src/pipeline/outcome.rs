//! What a task and a pipeline come to.

use noetl_model::Failure;
use noetl_model::scope::TaskResult;
use serde_json::{Map, Value};

use crate::document::Selection;

/// Adds the selected fields to a result under their own names. A result that is no map has no
/// place for them and stays as it is, and so does a field that is not there.
pub fn select(data: &mut Value, selections: &[Selection]) {
    let picked: Vec<(String, Value)> = selections
        .iter()
        .filter_map(|selection| {
            let found = selection.path.iter().try_fold(&*data, |value, key| step(value, key));
            Some((selection.name.to_string(), found?.clone()))
        })
        .collect();
    if let Value::Object(map) = data {
        map.extend(picked);
    }
}

/// The value behind a key of a map or a place in a list, which counts from the end when negative.
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

/// What a failed task is seen as by others: what its tool knows, and the failure as `error`.
pub fn failed_value(failure: &Failure) -> Value {
    let mut result = details(failure);
    result.insert("status".to_owned(), "error".into());
    result.insert("ok".to_owned(), false.into());
    result.insert("error".to_owned(), error_value(failure));
    Value::Object(result)
}

/// A failure as templates see it as `error`.
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

/// A pipeline's result from what its tasks answered by label, in the order they ran; all went well.
pub fn merged_result(answers: Vec<(String, Value)>) -> Value {
    let left =
        |(label, data): (String, Value)| TaskResult { name: label.into(), data, failed: false };
    merged(answers.into_iter().map(left).collect())
}

/// A pipeline's result from what its tasks left, in the order they ran: the data of the only one,
/// or a map of everything.
///
/// The maps among them are spread out, the later over the earlier, so that a field is found without
/// knowing which task made it. What an accepted failure says is found under its label alone: the
/// pipeline itself did not fail.
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
