//! Translates results and failures of published workers back.

use noetl_model::event::CommandSpec;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::pipeline::{merged_result, select};
use noetl_playbook::tool::Selection;
use serde::Deserialize;

use crate::kinds::PIPELINE;
use crate::split;

/// Fields of a task that its result depends on.
#[derive(Deserialize)]
struct TaskFields {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    config: Map,
    #[serde(default)]
    select: Vec<Selection>,
}

/// Translates the data of a result. A pipeline's data comes by label, and becomes the data of its
/// only task or a map of all. Data that already has the control plane's shape is unchanged.
pub fn decode_result(issued: &CommandSpec, data: Value) -> Value {
    if &*issued.tool != PIPELINE {
        return by_statement(&issued.tool, &issued.config, data);
    }
    let tasks = issued.config.get("tasks").map(Vec::<TaskFields>::deserialize);
    let (Some(Ok(tasks)), Value::Object(labels)) = (tasks, &data) else { return data };
    if tasks.is_empty() {
        return split::raised(issued, Vec::new()).unwrap_or(data);
    }
    let is_label = |name: &String| tasks.iter().any(|task| task.name == *name);
    if labels.is_empty() || !labels.keys().all(is_label) {
        return data;
    }
    let left = tasks.into_iter().filter_map(|task| {
        let data = labels.get(&task.name)?.clone();
        let mut data = by_statement(&task.kind, &task.config, data);
        select(&mut data, &task.select);
        Some((task.name, data))
    });
    let left: Vec<(String, Value)> = left.collect();
    match issued.split() {
        Some(_) => split::raised(issued, left).unwrap_or(data),
        None => merged_result(left),
    }
}

/// Returns the result of SQL statements, with that of the last one also under its index. Published
/// workers don't report the results of earlier statements.
fn by_statement(kind: &str, config: &Map, mut data: Value) -> Value {
    let count = match config.get("commands").and_then(Value::as_array) {
        Some(commands) => Some(commands.len()),
        None => {
            let text = ["query", "command", "sql"].iter().find_map(|name| config.get(*name));
            // Only the database knows how many statements a longer text contains.
            let text =
                text.and_then(Value::as_str).map(|text| text.trim_end().trim_end_matches(';'));
            text.filter(|text| !text.contains(';')).map(|_| 1)
        }
    };
    if let ("postgres" | "duckdb", Some(count @ 1..), Value::Object(result)) =
        (kind, count, &mut data)
    {
        let last = Value::Object(result.clone());
        result.entry(format!("command_{}", count - 1)).or_insert(last);
    }
    data
}

/// Returns the failure in a tool's response, with the kind derived from the fields that the tool
/// sets.
pub fn decode_failure(answer: &Map) -> Failure {
    let data = answer.get("data").and_then(Value::as_object);
    let field = |name: &str| data.and_then(|data| data.get(name)).or_else(|| answer.get(name));
    let said = match answer.get("error") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Object(error)) => error.get("message").and_then(Value::as_str).map(Into::into),
        _ => None,
    };
    let said = said.unwrap_or_else(|| "the worker reported a failure without a reason".to_owned());
    let named = answer.get("error").and_then(|error| error.get("kind")).and_then(Value::as_str);
    let (kind, message) = if let Some(kind) = named {
        (FailureKind::from(kind.to_owned()), said)
    } else if answer.get("status").and_then(Value::as_str) == Some("timeout") {
        (FailureKind::Timeout, said)
    } else if let Some(status) = field("status_code").and_then(Value::as_u64).or(status_in(&said)) {
        (of_status(status), said)
    } else if said.starts_with("Execution timed out") {
        (FailureKind::Timeout, said)
    } else if said.starts_with("Python script exited") {
        of_traceback(field("stderr").and_then(Value::as_str).unwrap_or_default(), said)
    } else if field("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0) {
        (FailureKind::ExitCode, said)
    } else {
        (FailureKind::Unknown, said)
    };
    let mut details = data.unwrap_or(answer).clone();
    // A pipeline returns the result of each task, and the error of the last one.
    if let Some(Value::Object(results)) = details.remove("labeled_results") {
        let failed = results.values().filter_map(Value::as_object).find(|data| {
            let has = |name: &str| data.get(name).and_then(Value::as_u64);
            match status_in(&message) {
                Some(status) => has("status_code") == Some(status),
                None => has("exit_code").is_some_and(|code| code != 0),
            }
        });
        details.extend(failed.cloned().into_iter().flatten());
        for name in ["stdout", "stderr"] {
            if let Some(text) = answer.get(name).filter(|text| **text != "") {
                details.entry(name).or_insert_with(|| text.clone());
            }
        }
    }
    Failure::new(kind, message).with_details(Value::Object(details))
}

/// Returns the status in the error of an HTTP call: `HTTP 404 response`.
fn status_in(error: &str) -> Option<u64> {
    error.strip_prefix("HTTP ")?.strip_suffix(" response")?.parse().ok()
}

fn of_status(status: u64) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        404 => FailureKind::NotFound,
        429 => FailureKind::RateLimit,
        500..=599 => FailureKind::ServerError,
        _ => FailureKind::ClientError,
    }
}

/// Returns the kind and message of a Python failure. The last line of the traceback says more than
/// the generic message.
fn of_traceback(stderr: &str, said: String) -> (FailureKind, String) {
    let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let Some(last) = last else { return (FailureKind::ExitCode, said) };
    let name = last.split(':').next().unwrap_or_default();
    let kind = match name {
        "TypeError" | "ValueError" | "KeyError" | "IndexError" => FailureKind::Schema,
        "SyntaxError" | "IndentationError" => FailureKind::Config,
        "ModuleNotFoundError" | "ImportError" => FailureKind::ToolMissing,
        _ => FailureKind::Unknown,
    };
    (kind, last.to_owned())
}
