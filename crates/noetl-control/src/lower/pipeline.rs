//! A pipeline: the tasks of one command, each with its rules.
//!
//! What a task sets after it went well is written by published workers for its later tasks and not
//! told to anybody; only what a rule sets is. So each rule comes twice: first for the case that the
//! task went well, with what the task sets, then as it is.

use noetl_model::event::Issued;
use noetl_model::{ExecutionId, Map, Value};
use serde_json::json;

use super::settings;
use super::text::{Texts, as_text, condition, is_template, single, typed};

/// Settings that are texts, whatever their templates come to.
const TEXTS: [&str; 6] = ["command", "code", "url", "query", "cwd", "subject"];

/// Settings that are maps of texts.
const TEXT_MAPS: [&str; 3] = ["env", "headers", "params"];

/// That a task went well, for its rules.
const WENT_WELL: &str = "output.status == 'success'";

pub(super) fn lacking(task: &Value) -> Option<String> {
    let kind = task.get("kind").and_then(Value::as_str).unwrap_or_default();
    let none = Map::new();
    let config = task.get("config").and_then(Value::as_object).unwrap_or(&none);
    settings::lacking(kind, config)
}

/// The tasks as a list of labelled settings.
pub(super) fn lowered(execution: ExecutionId, issued: &Issued, texts: &mut Texts) -> Value {
    let tasks = issued.config.get("tasks").and_then(Value::as_array);
    let tasks = tasks.into_iter().flatten();
    tasks.map(|task| task_lowered(execution, issued, task, texts)).collect()
}

fn task_lowered(execution: ExecutionId, issued: &Issued, task: &Value, texts: &mut Texts) -> Value {
    let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
    let map = |name: &str| task.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let list = |name: &str| task.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let kind = text("kind");
    let call = settings::Call {
        kind,
        execution,
        step: &issued.step,
        attempt: issued.attempt,
        timeout_ms: task.get("timeout_ms").and_then(Value::as_u64),
        is_rendered: false,
    };
    let mut input = map("input");
    if kind == "python" {
        add_item(issued, &mut input);
    }
    let (config, input) = call.lowered(map("config"), input);
    let mut spec = Map::new();
    for (name, value) in config {
        let is_raw = list("raw").iter().any(|raw| raw.as_str() == Some(&name));
        let value = if is_raw { texts.keep(value) } else { setting(&name, value) };
        spec.insert(name, value);
    }
    spec.insert("kind".to_owned(), kind.into());
    if !input.is_empty() {
        spec.insert("input".to_owned(), typed(Value::Object(input)));
    }
    let set = assignments(list("set"));
    if !set.is_empty() {
        spec.insert("set".to_owned(), Value::Object(set.clone()));
    }
    let rules = rules(list("rules"), set);
    if !rules.is_empty() {
        spec.insert("spec".to_owned(), json!({ "policy": { "rules": rules } }));
    }
    Value::Object(Map::from_iter([(text("name").to_owned(), Value::Object(spec))]))
}

/// Code that a loop runs names the item without being given it.
fn add_item(issued: &Issued, input: &mut Map) {
    let Some(iteration) = issued.scope.as_deref().and_then(|scope| scope.iteration.as_ref()) else {
        return;
    };
    for name in [&*iteration.name, "_index", "_total"] {
        input.entry(name).or_insert_with(|| format!("{{{{ {name} }}}}").into());
    }
}

/// A setting whose templates come to what its tool expects.
fn setting(name: &str, value: Value) -> Value {
    let texts = |value: Value| match value {
        Value::String(text) => Value::String(as_text(&text)),
        other => other,
    };
    match value {
        Value::String(text) if TEXTS.contains(&name) => Value::String(as_text(&text)),
        Value::Object(map) if TEXT_MAPS.contains(&name) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, texts(value))).collect())
        }
        other => typed(other),
    }
}

/// Assignments as published workers write them: dotted name to value.
fn assignments(list: &[Value]) -> Map {
    let one = |assignment: &Value| {
        let scope = assignment.get("scope")?.as_str()?;
        let path = assignment.get("path")?.as_array()?.iter().filter_map(Value::as_str);
        let name = std::iter::once(scope).chain(path).collect::<Vec<_>>().join(".");
        Some((name, typed(assignment.get("value").cloned().unwrap_or_default())))
    };
    list.iter().filter_map(one).collect()
}

/// What a task sets, told by a rule: there its answer is below `data`.
fn told_by_rule(set: Map) -> Map {
    let told = |value: Value| match value {
        Value::String(text) if is_template(&text) => {
            Value::String(format!("{{% set output = output.data %}}{text}"))
        }
        plain => plain,
    };
    set.into_iter().map(|(name, value)| (name, told(value))).collect()
}

fn rules(list: &[Value], set: Map) -> Vec<Value> {
    let set = told_by_rule(set);
    let mut rules = Vec::new();
    for rule in list {
        let then = action(rule);
        let when = match rule.get("when") {
            None | Some(Value::Null) => Value::Bool(true),
            Some(Value::String(text)) => Value::String(condition(text)),
            Some(other) => other.clone(),
        };
        if let Some(narrow) = both(&when).filter(|_| !set.is_empty()) {
            let mut then = then.clone();
            add_set(&mut then, set.clone());
            rules.push(json!({ "when": narrow, "then": then }));
        }
        rules.push(json!({ "when": when, "then": then }));
    }
    if !set.is_empty() {
        let mut then = Map::from_iter([("do".to_owned(), Value::from("continue"))]);
        add_set(&mut then, set);
        rules.push(json!({ "when": format!("{{{{ {WENT_WELL} }}}}"), "then": then }));
    }
    rules
}

/// A condition, and that the task went well; nothing when that can never be.
fn both(when: &Value) -> Option<String> {
    match when {
        Value::Bool(true) => Some(format!("{{{{ {WENT_WELL} }}}}")),
        Value::String(text) => Some(match single(text) {
            Some(expression) => format!("{{{{ ({expression}) and {WENT_WELL} }}}}"),
            None => format!("{{% if {WENT_WELL} %}}{text}{{% endif %}}"),
        }),
        _ => None,
    }
}

/// What the task sets comes before what the rule sets, which wins.
fn add_set(then: &mut Map, set: Map) {
    let own = then.remove("set");
    let mut all = set;
    if let Some(Value::Object(own)) = own {
        all.extend(own);
    }
    then.insert("set".to_owned(), Value::Object(all));
}

fn action(rule: &Value) -> Map {
    let mut then = Map::new();
    let action = rule.get("do").cloned().unwrap_or_else(|| "continue".into());
    let is_retry = action == "retry";
    then.insert("do".to_owned(), action);
    for name in ["attempts", "delay", "to"] {
        then.extend(rule.get(name).cloned().map(|value| (name.to_owned(), typed(value))));
    }
    if is_retry {
        // A pause that does not grow is none there; one that grows by itself is the nearest.
        let growth = match rule.get("backoff").and_then(Value::as_str) {
            Some("exponential") => "exponential",
            _ if rule.get("delay").is_some_and(|delay| delay.as_f64() == Some(0.0)) => "none",
            _ => "linear",
        };
        then.insert("backoff".to_owned(), growth.into());
    }
    let set = rule.get("set").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let set = assignments(set);
    if !set.is_empty() {
        then.insert("set".to_owned(), Value::Object(set));
    }
    then
}
