//! Pipelines as it runs them: tasks in a row, with rules after each.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::render::{holds, render};
use super::tools::{Answer, Context, run as run_tool};

/// Task runs at most; the real one stops later.
const RUNS_MAX: usize = 10_000;

/// What a rule asks for.
enum Next {
    On,
    Again(Duration),
    To(usize),
    Stop,
    Fail,
}

struct Sequence {
    context: Context,
    labelled: Map<String, Value>,
    updates: Map<String, Value>,
}

/// Runs the tasks. A tool that cannot run at all ends it at once, without a look at its rules.
pub(super) async fn run(config: &Value, context: &Context) -> Result<Answer, String> {
    let tasks = config.as_array().or_else(|| config.get("tasks").and_then(Value::as_array));
    let tasks: Vec<(&String, &Value)> =
        tasks.into_iter().flatten().filter_map(|task| task.as_object()?.iter().next()).collect();
    let mut sequence =
        Sequence { context: context.clone(), labelled: Map::new(), updates: Map::new() };
    let (mut at, mut attempt, mut last) = (0, 1_u32, Answer::default());
    for _ in 0..RUNS_MAX {
        let Some((label, spec)) = tasks.get(at) else {
            let mut data = sequence.labelled;
            if !sequence.updates.is_empty() {
                data.insert("_context_updates".to_owned(), Value::Object(sequence.updates));
            }
            return Ok(Answer { status: "success", data: Value::Object(data), ..last });
        };
        last = sequence.task(label, spec, attempt).await?;
        match sequence.judged(spec, &last, attempt, at, &tasks)? {
            Next::On => (at, attempt) = (at + 1, 1),
            Next::To(to) => (at, attempt) = (to, 1),
            Next::Stop => (at, attempt) = (tasks.len(), 1),
            Next::Again(pause) => {
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            Next::Fail => {
                let data = json!({"labeled_results": sequence.labelled, "failed_task": at});
                let error = last.error.take().or_else(|| Some("a rule failed it".to_owned()));
                return Ok(Answer { status: "error", data, error, ..last });
            }
        }
    }
    Err("too many task runs".to_owned())
}

impl Sequence {
    async fn task(&mut self, label: &str, spec: &Value, attempt: u32) -> Result<Answer, String> {
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
        let answer = run_tool(kind, &Value::Object(config), &self.context).await?;
        self.labelled.insert(label.to_owned(), answer.data.clone());
        let mut named = answer.data.clone();
        if let Value::Object(map) = &mut named {
            map.entry("data").or_insert_with(|| answer.data.clone());
        }
        self.context.names.insert(label.to_owned(), named);
        self.context.names.insert("output".to_owned(), answer.data.clone());
        if answer.status == "success"
            && let Some(Value::Object(set)) = spec.get("set")
        {
            for (name, value) in set {
                let value = render(value, &self.context.names)?;
                write(&mut self.context.names, name, value);
            }
        }
        Ok(answer)
    }

    fn judged(
        &mut self,
        spec: &Value,
        answer: &Answer,
        attempt: u32,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Next, String> {
        let is_good = answer.status == "success";
        let output = json!({
            "status": if is_good { "success" } else { "error" }, "data": answer.data,
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
        Ok(if is_good { Next::On } else { Next::Fail })
    }

    fn act(
        &mut self,
        then: &Value,
        attempt: u32,
        at: usize,
        tasks: &[(&String, &Value)],
    ) -> Result<Next, String> {
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
            "fail" => Next::Fail,
            "break" => Next::Stop,
            "retry" if f64::from(attempt) >= number("attempts", 3.0)? => Next::Fail,
            "retry" => {
                let growth = match then.get("backoff").and_then(Value::as_str) {
                    Some("linear") => f64::from(attempt),
                    Some("exponential") => 2.0_f64.powf(f64::from(attempt) - 1.0),
                    _ => 0.0,
                };
                Next::Again(Duration::from_secs_f64(number("delay", 1.0)? * growth))
            }
            "jump" => match then.get("to").and_then(Value::as_str) {
                Some("previous") => Next::To(at.saturating_sub(1)),
                to => {
                    let place = tasks.iter().position(|(label, _)| Some(label.as_str()) == to);
                    Next::To(place.ok_or("there is no such task")?)
                }
            },
            _ => Next::On,
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
