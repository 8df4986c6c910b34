//! Pipelines: tasks that a single worker runs in sequence, controlled by policy rules.
//!
//! A command carries its pipeline as JSON, the *source*, because the worker does not have the
//! playbook. [`Pipeline::compile`] is the only way to turn a source into a runnable pipeline. The
//! decoder produces the source, so the pipeline that runs is exactly the one that was checked.
//!
//! A source is `{"tasks": [task, …]}`; a task is
//!
//! ```json
//! {"name": "pull", "kind": "http", "config": {"url": "{{ workload.base }}"}, "input": {},
//!  "raw": ["code"], "timeout_ms": 5000, "idempotent": false,
//!  "set": [{"scope": "ctx", "path": ["page"], "value": "{{ output.next }}"}],
//!  "select": [{"name": "total", "path": ["meta", "total"]}],
//!  "rules": [{"when": "{{ output.status == 'error' }}", "do": "retry", "attempts": 3, "delay": 0.5,
//!             "backoff": "exponential", "max_delay": 10, "jitter": 0.2, "set": []}]}
//! ```
//!
//! All keys except `name` and `kind` are optional. `raw` lists settings that are not templates
//! although they look like templates. A rule without `when` always matches; `to` names the target
//! of a jump.

mod call;
mod looped;
mod mentions;
mod outcome;
mod request;
mod rules;
mod run;
mod scope;
mod split;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use noetl_template::{Guard, Mention, SyntaxError, Template, ValueTemplate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::assignment::{Assignment, SetScope};
use crate::tool::{Selection, Tool};

pub use call::TaskCall;
pub use looped::loop_result;
pub use outcome::{failed_value, merged, merged_result, select};
pub use request::{PipelineEnd, PipelineRequest};
pub use rules::{MatchedRule, RuleError, judge};
pub use run::{PipelineRun, TASK_RUNS_MAX};
pub use scope::scope_of;
pub use split::{earlier_blob, earlier_key, earlier_tasks};
pub use writes::{EvaluatedAssignment, note, rendered, write};

/// Compiled tasks in order, with the source they were compiled from.
#[derive(Debug)]
pub struct Pipeline {
    /// Tasks in order. Never empty.
    pub tasks: Vec<PipelineTask>,
    /// Source, which a command carries.
    pub source: Arc<Value>,
    /// Names of the state that the templates refer to. Computed on first use.
    mentions: OnceLock<BTreeSet<Mention>>,
}

#[derive(Debug)]
pub struct PipelineTask {
    /// Label, unique within the pipeline.
    pub label: Arc<str>,
    pub tool: Tool,
    /// Assignments applied after each successful run, before the rules. `output` is the raw data.
    pub set: Vec<Assignment>,
    /// Rules evaluated after each run. The first that matches decides.
    pub rules: Vec<PolicyRule>,
}

/// A policy rule, evaluated after a run.
#[derive(Debug)]
pub struct PolicyRule {
    pub when: Guard,
    /// Assignments applied before the action.
    pub set: Vec<Assignment>,
    pub action: Action,
}

#[derive(Debug)]
pub enum Action {
    /// Continues with the next task. Accepts an error.
    Continue,
    /// Runs the task again after a delay.
    Retry(Box<Retry>),
    /// Continues with another task.
    Jump(Jump),
    /// Ends the pipeline successfully.
    Break,
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Jump {
    /// The task with this label.
    To(Arc<str>),
    /// The task before this one.
    Previous,
}

#[derive(Debug)]
pub struct Retry {
    /// Maximum number of attempts. Default: 3.
    pub attempts: Option<ValueTemplate>,
    /// Delay before the second attempt in seconds. Default: 1.
    pub delay: Option<ValueTemplate>,
    /// Growth of the delay between attempts.
    pub backoff: Backoff,
    pub max_delay: Option<ValueTemplate>,
    /// Maximum fraction by which a delay is randomly shortened, 0 to 1.
    pub jitter: Option<ValueTemplate>,
}

/// Growth of the delay between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// The delay stays the same.
    #[default]
    #[serde(alias = "none")]
    Fixed,
    /// The delay grows by the base delay each time.
    Linear,
    /// The delay doubles each time.
    Exponential,
}

#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The source does not match the schema.
    #[error("the pipeline is not in the form commands carry: {0}")]
    Shape(#[from] serde_json::Error),
    /// A template has a syntax error.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The pipeline has no task, or a rule's target does not exist.
    #[error("the pipeline cannot run: {0}")]
    Meaning(String),
}

#[derive(Deserialize)]
struct PipelineSource {
    tasks: Vec<TaskSource>,
}

#[derive(Deserialize)]
struct TaskSource {
    name: Arc<str>,
    kind: Arc<str>,
    #[serde(default)]
    config: Map<String, Value>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    raw: Vec<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default = "yes")]
    idempotent: bool,
    #[serde(default)]
    set: Vec<AssignmentSource>,
    #[serde(default)]
    select: Vec<Selection>,
    #[serde(default)]
    rules: Vec<RuleSource>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct AssignmentSource {
    scope: SetScope,
    path: Vec<String>,
    value: Value,
}

#[derive(Deserialize)]
struct RuleSource {
    #[serde(default)]
    when: Option<Value>,
    #[serde(rename = "do")]
    action: String,
    #[serde(default)]
    attempts: Option<Value>,
    #[serde(default)]
    delay: Option<Value>,
    #[serde(default)]
    backoff: Backoff,
    #[serde(default)]
    max_delay: Option<Value>,
    #[serde(default)]
    jitter: Option<Value>,
    #[serde(default)]
    to: Option<Arc<str>>,
    #[serde(default)]
    set: Vec<AssignmentSource>,
}

impl Pipeline {
    /// Compiles a source and checks its labels, jumps, and assignments.
    pub fn compile(source: Arc<Value>) -> Result<Self, PipelineError> {
        let read = PipelineSource::deserialize(&*source)?;
        let tasks: Vec<PipelineTask> =
            read.tasks.into_iter().map(task).collect::<Result<_, PipelineError>>()?;
        if tasks.is_empty() {
            return Err(PipelineError::Meaning("it has no task".to_owned()));
        }
        check(&tasks).map_err(PipelineError::Meaning)?;
        Ok(Self { tasks, source, mentions: OnceLock::new() })
    }

    /// Returns the index of the task with this label.
    pub fn find(&self, label: &str) -> Option<usize> {
        self.tasks.iter().position(|task| *task.label == *label)
    }

    /// Returns every template of every task.
    pub fn templates(&self) -> Vec<&Template> {
        self.tasks.iter().flat_map(PipelineTask::templates).collect()
    }
}

impl PipelineTask {
    /// Returns every template of the task.
    pub fn templates(&self) -> Vec<&Template> {
        let mut all = self.tool.config.templates();
        all.extend(self.tool.input.templates());
        all.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        all.extend(self.rules.iter().flat_map(PolicyRule::templates));
        all
    }
}

impl PolicyRule {
    /// Returns every template of the rule.
    pub fn templates(&self) -> Vec<&Template> {
        let mut all: Vec<&Template> = self.when.template().into_iter().collect();
        all.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        if let Action::Retry(retry) = &self.action {
            let values = [&retry.attempts, &retry.delay, &retry.max_delay, &retry.jitter];
            all.extend(values.into_iter().flatten().flat_map(ValueTemplate::templates));
        }
        all
    }
}

fn check(tasks: &[PipelineTask]) -> Result<(), String> {
    let mut labels = HashSet::new();
    for task in tasks {
        if !labels.insert(&task.label) {
            return Err(format!("two tasks are called '{}'", task.label));
        }
    }
    for (place, task) in tasks.iter().enumerate() {
        for rule in &task.rules {
            match &rule.action {
                Action::Jump(Jump::To(label)) if !labels.contains(label) => {
                    return Err(format!("it has no task called '{label}'"));
                }
                Action::Jump(Jump::Previous) if place == 0 => {
                    return Err(format!("there is no task before '{}' to jump to", task.label));
                }
                _ => {}
            }
        }
        let sets = task.rules.iter().flat_map(|rule| &rule.set);
        if task.set.iter().chain(sets).any(|assignment| assignment.path.is_empty()) {
            return Err(format!("an assignment of the task '{}' names nothing", task.label));
        }
    }
    Ok(())
}

/// Compiles rules in the form of a task's source, for work that is not a pipeline.
pub fn compile_rules(rules: &Value) -> Result<Vec<PolicyRule>, PipelineError> {
    let rules: Vec<RuleSource> = Vec::deserialize(rules)?;
    rules.into_iter().map(rule).collect()
}

fn task(source: TaskSource) -> Result<PipelineTask, PipelineError> {
    let mut config = Vec::with_capacity(source.config.len());
    for (name, value) in source.config {
        let value = if source.raw.contains(&name) {
            ValueTemplate::Literal(value)
        } else {
            ValueTemplate::compile(value)?
        };
        config.push((name, value));
    }
    let input = match source.input {
        Value::Null => Value::Object(Map::new()),
        input => input,
    };
    let tool = Tool {
        kind: source.kind,
        config: ValueTemplate::map(config),
        input: ValueTemplate::compile(input)?,
        timeout: source.timeout_ms.map(Duration::from_millis),
        select: source.select,
        idempotent: source.idempotent,
    };
    let rules = source.rules.into_iter().map(rule).collect::<Result<_, _>>()?;
    Ok(PipelineTask { label: source.name, tool, set: assignments(source.set)?, rules })
}

fn assignments(sources: Vec<AssignmentSource>) -> Result<Vec<Assignment>, PipelineError> {
    let compile = |source: AssignmentSource| {
        let value = ValueTemplate::compile(source.value)?;
        Ok(Assignment { scope: source.scope, path: source.path, value })
    };
    sources.into_iter().map(compile).collect()
}

fn rule(source: RuleSource) -> Result<PolicyRule, PipelineError> {
    let when = match &source.when {
        None | Some(Value::Null) => Guard::Constant(true),
        Some(Value::Bool(answer)) => Guard::Constant(*answer),
        Some(Value::String(text)) => Guard::parse(text)?,
        Some(other) => {
            return Err(PipelineError::Meaning(format!("'{other}' is no condition")));
        }
    };
    let value = |value: Option<Value>| value.map(ValueTemplate::compile).transpose();
    let action = match source.action.as_str() {
        "continue" => Action::Continue,
        "break" => Action::Break,
        "fail" => Action::Fail,
        "retry" => Action::Retry(Box::new(Retry {
            attempts: value(source.attempts)?,
            delay: value(source.delay)?,
            backoff: source.backoff,
            max_delay: value(source.max_delay)?,
            jitter: value(source.jitter)?,
        })),
        "jump" => Action::Jump(jump(source.to)?),
        other => return Err(PipelineError::Meaning(format!("there is no action '{other}'"))),
    };
    Ok(PolicyRule { when, set: assignments(source.set)?, action })
}

fn jump(to: Option<Arc<str>>) -> Result<Jump, PipelineError> {
    match to.as_deref() {
        Some("previous" | "prev" | "_previous" | "@previous") => Ok(Jump::Previous),
        Some(_) => Ok(Jump::To(to.expect("matched just above"))),
        None => Err(PipelineError::Meaning("a jump names no task".to_owned())),
    }
}
