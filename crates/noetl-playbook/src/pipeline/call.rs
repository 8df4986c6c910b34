//! Rendering of a task to a tool call.

use std::sync::Arc;
use std::time::Duration;

use noetl_template::{Scope, ValueTemplate, exact_json};
use serde_json::{Map, Value};

use super::PipelineTask;
use super::rules::RuleError;

/// A rendered call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCall {
    pub label: Arc<str>,
    pub kind: Arc<str>,
    pub config: Map<String, Value>,
    /// Named arguments of the tool.
    pub input: Map<String, Value>,
    /// Time limit of the call.
    pub timeout: Option<Duration>,
    /// Attempt since the task was entered, from 1.
    pub attempt: u32,
}

/// Renders a task for its first attempt.
pub(super) fn rendered_call(task: &PipelineTask, scope: &Scope) -> Result<TaskCall, RuleError> {
    let mut input = rendered_map(&task.tool.input, scope, "input")?;
    // Python code in a loop can use the item without an explicit argument.
    if let (Some(iteration), "python") = (&scope.iteration, &*task.tool.kind) {
        input
            .entry(&*iteration.name)
            .or_insert_with(|| exact_json(&scope.reach.data(&iteration.item)));
        input.entry("_index").or_insert_with(|| iteration.index.into());
        if let Some(total) = iteration.total {
            input.entry("_total").or_insert_with(|| total.into());
        }
    }
    Ok(TaskCall {
        label: task.label.clone(),
        kind: task.tool.kind.clone(),
        config: rendered_map(&task.tool.config, scope, "")?,
        input,
        timeout: task.tool.timeout,
        attempt: 1,
    })
}

fn rendered_map(
    template: &ValueTemplate,
    scope: &Scope,
    name: &str,
) -> Result<Map<String, Value>, RuleError> {
    let at = |below: &str| match (name, below) {
        ("", below) => below.to_owned(),
        (name, "") => name.to_owned(),
        (name, below) => format!("{name}.{below}"),
    };
    match template.render_named(scope) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(RuleError {
            key: at(""),
            message: format!("it is a map of named values, and this is {}", kind_of(&other)),
            expression: template.templates().first().map(|template| template.source().to_owned()),
        }),
        Err((below, error)) => Err(RuleError::render(at(&below), &error)),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
