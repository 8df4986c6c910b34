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
    /// Names that later tasks see: those of the command, results by label, and assignments.
    context: Context,
    labelled: Map<String, Value>,
    updates: Map<String, Value>,
    /// Retries of each task. The released worker never resets them.
    retries: Vec<u32>,
}

/// Runs the tasks. A tool that fails to start ends the sequence without evaluating its rules.
pub(super) async fn run(config: &Value, context: &Context) -> Result<ToolOutcome, String> {
    let tasks = config.as_array().or_else(|| config.get("tasks").and_then(Value::as_array));
    let tasks: Vec<(&String, &Value)> =
        tasks.into_iter().flatten().filter_map(|task| task.as_object()?.iter().next()).collect();
    let mut sequence = Sequence {
        context: context.clone(),
        labelled: Map::new(),
        updates: Map::new(),
        retries: vec![0; tasks.len()],
    };
    let (mut at, mut last) = (0, ToolOutcome::default());
    for _ in 0..RUNS_MAX {
        let Some((label, spec)) = tasks.get(at) else {
            let mut data = sequence.labelled;
            if !sequence.updates.is_empty() {
                data.insert("_context_updates".to_owned(), Value::Object(sequence.updates));
            }
            return Ok(ToolOutcome { status: "success", data: Value::Object(data), ..last });
        };
        let seen;
        (last, seen) = sequence.task(label, spec).await?;
        match sequence.evaluate_rules(spec, &last, &seen, at, &tasks)? {
            Action::Continue => at += 1,
            Action::Jump(to) => at = to,
            Action::Break => at = tasks.len(),
            Action::Retry(pause) => tokio::time::sleep(pause).await,
            Action::Fail => {
                let data = json!({"labeled_results": sequence.labelled, "failed_task": at});
                let error = last.error.take().or_else(|| {
                    Some(format!("policy rule triggered fail for task[{at}] '{label}'"))
                });
                return Ok(ToolOutcome { status: "error", data, error, ..last });
            }
        }
    }
    Err("too many task runs".to_owned())
}

impl Sequence {
    /// Runs one task. Returns its outcome, and the names that its templates saw.
    async fn task(
        &mut self,
        label: &str,
        spec: &Value,
    ) -> Result<(ToolOutcome, Map<String, Value>), String> {
        let mut config = spec.as_object().cloned().unwrap_or_default();
        let kind = config.remove("kind").unwrap_or_default();
        for name in ["set", "spec"] {
            config.remove(name);
        }
        // The input is rendered here, below with the whole configuration, and by the tool.
        let mut seen = self.context.clone();
        let input = config.get("input").or_else(|| config.get("args")).and_then(Value::as_object);
        for (key, value) in input.into_iter().flatten() {
            let value = render(value, &self.context.names)?;
            seen.names.insert(key.clone(), value);
        }
        let kind = kind.as_str().unwrap_or_default();
        let config = render(&Value::Object(config), &seen.names)?;
        let outcome = run_tool(kind, &config, &seen).await?;
        self.labelled.insert(label.to_owned(), outcome.data.clone());
        let mut named = outcome.data.clone();
        if let Value::Object(map) = &mut named {
            map.entry("data").or_insert_with(|| outcome.data.clone());
        }
        self.context.names.insert(label.to_owned(), named);
        // Applied whatever the outcome is.
        if let Some(Value::Object(set)) = spec.get("set") {
            let mut names = seen.names.clone();
            names.insert("output".to_owned(), outcome.data.clone());
            for (name, value) in set {
                let value = render(value, &names)?;
                write(&mut self.context.names, name, value);
            }
        }
        Ok((outcome, seen.names))
    }

    fn evaluate_rules(
        &mut self,
        spec: &Value,
        outcome: &ToolOutcome,
        seen: &Map<String, Value>,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Action, String> {
        let output = json!({
            "status": if outcome.status == "success" { "success" } else { "error" },
            "data": outcome.data, "error": {"retryable": false},
        });
        let mut names = seen.clone();
        names.insert("output".to_owned(), output);
        names.insert("_attempt".to_owned(), (self.retries[at] + 1).into());
        let rules = spec.pointer("/spec/policy/rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            let (when, then) = match (rule.get("when"), rule.get("else")) {
                (Some(when), _) => (when.clone(), rule.get("then")),
                (None, Some(other)) => (json!(true), other.get("then")),
                (None, None) => continue,
            };
            if holds(&when, &names) {
                return self.act(then.unwrap_or(&Value::Null), &names, at, tasks);
            }
        }
        // A time limit is no error here.
        Ok(if outcome.status == "error" { Action::Fail } else { Action::Continue })
    }

    fn act(
        &mut self,
        then: &Value,
        names: &Map<String, Value>,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Action, String> {
        for (name, value) in then.get("set").and_then(Value::as_object).into_iter().flatten() {
            let value = render(value, names)?;
            write(&mut self.context.names, name, value.clone());
            self.updates.insert(name.clone(), value);
        }
        // Numbers of a rule are not rendered.
        let number = |name: &str, other: f64| match then.get(name) {
            Some(Value::Number(number)) => number.as_f64().unwrap_or(other),
            Some(Value::String(text)) => text.trim().parse().unwrap_or(other),
            _ => other,
        };
        Ok(match then.get("do").and_then(Value::as_str).unwrap_or("continue") {
            "fail" => Action::Fail,
            "break" => Action::Break,
            "retry" => {
                self.retries[at] += 1;
                let retries = f64::from(self.retries[at]);
                if retries >= number("attempts", 3.0).max(1.0) {
                    return Ok(Action::Fail);
                }
                let growth = match then.get("backoff").and_then(Value::as_str) {
                    None | Some("none") => 0.0,
                    Some("linear") => retries,
                    Some("exponential") => 2.0_f64.powf(retries - 1.0),
                    Some(_) => 1.0,
                };
                Action::Retry(Duration::from_secs_f64(number("delay", 1.0) * growth))
            }
            "jump" => match then.get("to").and_then(Value::as_str).map(str::trim) {
                Some("previous" | "prev") => {
                    Action::Jump(at.checked_sub(1).ok_or("jump before the first task")?)
                }
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
