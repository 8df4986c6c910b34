//! Task sequences of the released worker: tasks in order, with policy rules after each.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::render::{holds, render};
use super::tools::{Context, ToolOutcome, run as run_tool};

/// Most task runs of a sequence; the limit of the released worker is higher.
const RUNS_MAX: usize = 10_000;

/// Action of a policy rule.
enum Action {
    Continue,
    Retry(Duration),
    Jump(usize),
    Break,
    Fail,
}

struct Sequence {
    context: Context,
    labelled: Map<String, Value>,
    updates: Map<String, Value>,
}

/// Runs the tasks. A tool that fails to start ends the sequence without evaluating its rules.
pub(super) async fn run(config: &Value, context: &Context) -> Result<ToolOutcome, String> {
    let tasks = config.as_array().or_else(|| config.get("tasks").and_then(Value::as_array));
    let tasks: Vec<(&String, &Value)> =
        tasks.into_iter().flatten().filter_map(|task| task.as_object()?.iter().next()).collect();
    let mut sequence =
        Sequence { context: context.clone(), labelled: Map::new(), updates: Map::new() };
    let (mut at, mut attempt, mut last) = (0, 1_u32, ToolOutcome::default());
    for _ in 0..RUNS_MAX {
        let Some((label, spec)) = tasks.get(at) else {
            let mut data = sequence.labelled;
            if !sequence.updates.is_empty() {
                data.insert("_context_updates".to_owned(), Value::Object(sequence.updates));
            }
            return Ok(ToolOutcome { status: "success", data: Value::Object(data), ..last });
        };
        last = sequence.task(label, spec, attempt).await?;
        match sequence.evaluate_rules(spec, &last, attempt, at, &tasks)? {
            Action::Continue => (at, attempt) = (at + 1, 1),
            Action::Jump(to) => (at, attempt) = (to, 1),
            Action::Break => (at, attempt) = (tasks.len(), 1),
            Action::Retry(pause) => {
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            Action::Fail => {
                let data = json!({"labeled_results": sequence.labelled, "failed_task": at});
                let error =
                    last.error.take().or_else(|| Some("a policy rule failed the task".to_owned()));
                return Ok(ToolOutcome { status: "error", data, error, ..last });
            }
        }
    }
    Err("too many task runs".to_owned())
}

impl Sequence {
    async fn task(
        &mut self,
        label: &str,
        spec: &Value,
        attempt: u32,
    ) -> Result<ToolOutcome, String> {
        self.context.names.insert("_attempt".to_owned(), attempt.into());
        let mut config = spec.as_object().cloned().unwrap_or_default();
        let kind = config.remove("kind").unwrap_or_default();
        for name in ["set", "spec"] {
            config.remove(name);
        }
        for name in ["input", "args"] {
            let given = config.get(name).and_then(Value::as_object).cloned();
            for (key, value) in given.into_iter().flatten() {
                let value = render(&value, &self.context.names)?;
                self.context.names.insert(key, value);
            }
        }
        let kind = kind.as_str().unwrap_or_default();
        let outcome = run_tool(kind, &Value::Object(config), &self.context).await?;
        self.labelled.insert(label.to_owned(), outcome.data.clone());
        let mut named = outcome.data.clone();
        if let Value::Object(map) = &mut named {
            map.entry("data").or_insert_with(|| outcome.data.clone());
        }
        self.context.names.insert(label.to_owned(), named);
        self.context.names.insert("output".to_owned(), outcome.data.clone());
        if outcome.status == "success"
            && let Some(Value::Object(set)) = spec.get("set")
        {
            for (name, value) in set {
                let value = render(value, &self.context.names)?;
                write(&mut self.context.names, name, value);
            }
        }
        Ok(outcome)
    }

    fn evaluate_rules(
        &mut self,
        spec: &Value,
        outcome: &ToolOutcome,
        attempt: u32,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Action, String> {
        let is_good = outcome.status == "success";
        let output = json!({
            "status": if is_good { "success" } else { "error" }, "data": outcome.data,
            "error": {"retryable": false},
        });
        self.context.names.insert("output".to_owned(), output);
        let rules = spec.pointer("/spec/policy/rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            let (when, then) = match rule.get("else") {
                Some(other) => (json!(true), other.get("then")),
                None => (rule.get("when").cloned().unwrap_or(json!(true)), rule.get("then")),
            };
            if holds(&when, &self.context.names)? {
                return self.act(then.unwrap_or(&Value::Null), attempt, at, tasks);
            }
        }
        Ok(if is_good { Action::Continue } else { Action::Fail })
    }

    fn act(
        &mut self,
        then: &Value,
        attempt: u32,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Action, String> {
        for (name, value) in then.get("set").and_then(Value::as_object).into_iter().flatten() {
            let value = render(value, &self.context.names)?;
            write(&mut self.context.names, name, value.clone());
            self.updates.insert(name.clone(), value);
        }
        let number = |name: &str, other: f64| -> Result<f64, String> {
            let value = then.get(name).map(|value| render(value, &self.context.names));
            Ok(value.transpose()?.and_then(|value| value.as_f64()).unwrap_or(other))
        };
        Ok(match then.get("do").and_then(Value::as_str).unwrap_or("continue") {
            "fail" => Action::Fail,
            "break" => Action::Break,
            "retry" if f64::from(attempt) >= number("attempts", 3.0)? => Action::Fail,
            "retry" => {
                let growth = match then.get("backoff").and_then(Value::as_str) {
                    Some("linear") => f64::from(attempt),
                    Some("exponential") => 2.0_f64.powf(f64::from(attempt) - 1.0),
                    _ => 0.0,
                };
                Action::Retry(Duration::from_secs_f64(number("delay", 1.0)? * growth))
            }
            "jump" => match then.get("to").and_then(Value::as_str) {
                Some("previous") => Action::Jump(at.saturating_sub(1)),
                to => {
                    let index = tasks.iter().position(|(label, _)| Some(label.as_str()) == to);
                    Action::Jump(index.ok_or("jump to an unknown task")?)
                }
            },
            _ => Action::Continue,
        })
    }
}

/// Writes a value under a dotted name.
fn write(names: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(names.insert(name.to_owned(), value)),
        Some((first, rest)) => {
            let below = names.entry(first).or_insert_with(|| json!({}));
            if !below.is_object() {
                *below = json!({});
            }
            if let Value::Object(below) = below {
                write(below, rest, value);
            }
        }
    }
}
