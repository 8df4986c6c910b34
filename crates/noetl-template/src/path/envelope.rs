//! `output`: data and status of a step or task.

use std::sync::Arc;

use noetl_model::Failure;
use serde_json::{Map, Value};

use super::{View, is_response, response_field};
use crate::data::{Data, field};
use crate::json::from_json;
use crate::scope::{Scope, StepOutput};
use crate::{listed, reference};

/// Looks up a key of `output`.
///
/// In policy rules, the envelope's keys take precedence. In other templates, the data's keys come
/// first, then `data` as the data itself, then the envelope.
///
/// `output.data` of an HTTP response is the response, not its key `data`: authors write both
/// `output.data.data.x` and `output.data.x` for a field of the body, and both work.
pub(super) fn output_field<'s>(output: &'s StepOutput, key: &str, scope: &'s Scope) -> View<'s> {
    if output.envelope_first
        && let Some(view) = envelope_field(output, key, scope)
    {
        return view;
    }
    // The meaning of `data` depends on the whole value.
    if key != "data"
        && let Some(value) = output.data.known_field(key)
    {
        return View::Plain(value);
    }
    if let Some(value) = reference::field(&output.data, step(scope), key, scope) {
        return View::Plain(value);
    }
    let data = scope.reach.data(&output.data);
    if key == "data" && is_response(&data) {
        return View::Response(data);
    }
    if let Some(value) = field(&data, key) {
        return View::Plain(value);
    }
    match envelope_field(output, key, scope) {
        Some(view) => view,
        None if is_response(&data) => response_field(&data, key),
        None => View::Plain(Data::UNDEFINED),
    }
}

/// Returns `output` as a whole, as policy rules see it.
pub(super) fn whole(output: &StepOutput, scope: &Scope) -> Data {
    let keys = ["status", "ok", "data", "error", "http", "pg", "py", "meta"];
    let pairs = keys.into_iter().filter_map(|key| {
        let view = envelope_field(output, key, scope)?;
        Some((key, view.into_data(scope)))
    });
    Data::from_pairs(pairs.collect::<Vec<_>>())
}

fn envelope_field<'s>(output: &StepOutput, key: &str, scope: &'s Scope) -> Option<View<'s>> {
    let failure = output.failure.as_deref();
    let value = match key {
        "data" | "result" | "response" => return Some(data_view(output, scope)),
        "status" => Some(Data::from(if failure.is_some() { "error" } else { "ok" })),
        "ok" => Some(Data::from(failure.is_none())),
        "error" => failure.map(error_data),
        "http" => http_data(output, failure, scope),
        "pg" => failure.and_then(pg_data).map(|pg| from_json(&pg)),
        "py" => failure.and_then(py_data).map(|py| from_json(&py)),
        "meta" => scope.task.as_ref().map(|task| {
            let duration = task.duration_ms.map_or(Data::from(()), Data::from);
            Data::from_pairs([("attempt", Data::from(task.attempt)), ("duration_ms", duration)])
        }),
        "ref" => reference::field(&output.data, step(scope), "_ref", scope),
        _ => None,
    };
    value.map(View::Plain)
}

fn data_view<'s>(output: &StepOutput, scope: &'s Scope) -> View<'s> {
    let data = scope.reach.data(&output.data);
    if is_response(&data) {
        View::Response(data)
    } else if listed::is_loop(&data) {
        View::Listed(data)
    } else {
        View::Result(output.data.clone(), step(scope).cloned())
    }
}

fn step(scope: &Scope) -> Option<&Arc<str>> {
    match &scope.task {
        Some(task) => Some(&task.label),
        None => scope.own.as_ref().map(|(name, _)| name),
    }
}

/// Converts a failure to the form that templates see: the message, the tool's details, and the keys
/// that policies match on, regardless of where the tool put them.
fn error_data(failure: &Failure) -> Data {
    let mut fields = Map::new();
    fields.insert("kind".to_owned(), failure.kind.as_str().into());
    fields.insert("message".to_owned(), failure.message.as_str().into());
    fields.insert("retryable".to_owned(), failure.retryable.into());
    for (key, value) in details(failure).into_iter().flatten() {
        fields.entry(key).or_insert_with(|| value.clone());
    }
    let status = detail(failure, &["http", "status"]);
    let exception = py_data(failure).and_then(|py| py.get("exception_type").cloned());
    let sqlstate = pg_data(failure).and_then(|pg| pg.get("code").cloned());
    let code = sqlstate.clone().or_else(|| status.cloned());
    let derived = [
        ("status_code", status.cloned()),
        ("http_status", status.cloned()),
        ("pg_code", sqlstate),
        ("exception_type", exception),
        ("code", code),
    ];
    for (key, value) in derived {
        if let Some(value) = value {
            fields.entry(key).or_insert(value);
        }
    }
    from_json(&Value::Object(fields))
}

/// Returns `output.http`: the status and headers of a response, for failed and successful steps.
fn http_data(output: &StepOutput, failure: Option<&Failure>, scope: &Scope) -> Option<Data> {
    if let Some(http) = failure.and_then(|failure| detail(failure, &["http"])) {
        return Some(from_json(http));
    }
    let data = scope.reach.data(&output.data);
    is_response(&data).then(|| {
        let part = |key| field(&data, key).unwrap_or(Data::UNDEFINED);
        Data::from_pairs([("status", part("status_code")), ("headers", part("headers"))])
    })
}

/// Returns `output.pg`: the error code of the database, as `code` and as `sqlstate`.
fn pg_data(failure: &Failure) -> Option<Value> {
    let mut fields = match detail(failure, &["pg"]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let named = ["code", "sqlstate"].iter().find_map(|key| fields.get(*key).cloned());
    let beside = || {
        let keys = ["pg_code", "sqlstate"];
        keys.iter().find_map(|key| detail(failure, &[key])).cloned()
    };
    if let Some(code) = named.or_else(beside) {
        fields.entry("code").or_insert_with(|| code.clone());
        fields.entry("sqlstate").or_insert(code);
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// Returns `output.py`: the exception that a Python task raised.
fn py_data(failure: &Failure) -> Option<Value> {
    let mut fields = match detail(failure, &["py"]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    for key in ["exception_type", "traceback"] {
        if let Some(value) = detail(failure, &[key]) {
            fields.entry(key).or_insert_with(|| value.clone());
        }
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn details(failure: &Failure) -> Option<&Map<String, Value>> {
    failure.details.as_deref().and_then(Value::as_object)
}

fn detail<'f>(failure: &'f Failure, path: &[&str]) -> Option<&'f Value> {
    let details = failure.details.as_deref()?;
    path.iter().try_fold(details, |value, key| value.get(key))
}
