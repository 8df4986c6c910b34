//! Pipelines: tasks that one worker runs in a row, under rules of their own.
//!
//! A pipeline travels in its command as JSON, its *source*, because whoever runs it has no playbook
//! at hand; [`Pipeline::compile`] is the one way from a source to something that can run. The
//! decoder writes the source, so what is checked is what runs.
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
//! Everything but `name` and `kind` may be left out. `raw` names settings that are not templates
//! although they look like some. A rule without `when` always matches; `to` names a jump's target.

mod call;
mod judge;
mod looped;
mod mentions;
mod outcome;
mod run;
mod scope;
mod split;
#[cfg(test)]
mod tests;
mod turn;
mod writes;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Assignment, Selection, SetScope, Tool};
use crate::template::{Guard, Mention, SyntaxError, Template, ValueTemplate};

pub use call::TaskCall;
pub use judge::{Judged, Trouble, judge};
pub use looped::loop_result;
pub use outcome::{failed_value, merged, merged_result, select};
pub use run::{Run, TASK_RUNS_MAX};
pub use scope::scope_of;
pub use split::{earlier_blob, earlier_key, earlier_tasks};
pub use turn::{PipelineEnd, Turn};
pub use writes::{Written, note, rendered, write};

/// Tasks in order, compiled, with the source they were compiled from.
#[derive(Debug)]
pub struct Pipeline {
    /// The tasks; at least one.
    pub tasks: Vec<Task>,
    /// What a command carries.
    pub source: Arc<Value>,
    /// What they name of the state, once somebody asked.
    mentions: OnceLock<BTreeSet<Mention>>,
}

#[derive(Debug)]
pub struct Task {
    /// Its label, unique within the pipeline.
    pub label: Arc<str>,
    pub tool: Tool,
    /// Assignments after each run that went well, before its rules; `output` is the raw data.
    pub set: Vec<Assignment>,
    /// Evaluated after each run; the first that matches decides.
    pub rules: Vec<Rule>,
}

/// What to do after a run.
#[derive(Debug)]
pub struct Rule {
    pub when: Guard,
    /// Assignments before the action.
    pub set: Vec<Assignment>,
    pub action: Action,
}

/// What a rule does.
#[derive(Debug)]
pub enum Action {
    /// On to the next task; an error is thereby accepted.
    Continue,
    /// The same task again, after a pause.
    Retry(Box<Retry>),
    /// On at another task.
    Jump(Jump),
    /// The pipeline ends well.
    Break,
    Fail,
}

/// Where a jump leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Jump {
    /// The task of this label.
    To(Arc<str>),
    /// The task before this one.
    Previous,
}

/// How a task is tried again.
#[derive(Debug)]
pub struct Retry {
    /// How often it runs altogether; 3 when absent.
    pub attempts: Option<ValueTemplate>,
    /// Seconds before the second run; 1 when absent.
    pub delay: Option<ValueTemplate>,
    /// How the pause grows.
    pub backoff: Backoff,
    /// The longest pause, in seconds.
    pub max_delay: Option<ValueTemplate>,
    /// How much of the pause is left to chance, 0 to 1.
    pub jitter: Option<ValueTemplate>,
}

/// How a pause grows from try to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// Not at all.
    #[default]
    #[serde(alias = "none")]
    Fixed,
    /// By the base each time.
    Linear,
    /// Twofold each time.
    Exponential,
}

/// Why a source cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// It has another shape.
    #[error("the pipeline is not in the form commands carry: {0}")]
    Shape(#[from] serde_json::Error),
    /// One of its templates is wrong.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// It has no task, or a rule leads nowhere.
    #[error("the pipeline cannot run: {0}")]
    Meaning(String),
}

#[derive(Deserialize)]
struct Source {
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
    /// Compiles a source.
    pub fn compile(source: Arc<Value>) -> Result<Self, PipelineError> {
        let read = Source::deserialize(&*source)?;
        let tasks: Vec<Task> =
            read.tasks.into_iter().map(task).collect::<Result<_, PipelineError>>()?;
        if tasks.is_empty() {
            return Err(PipelineError::Meaning("it has no task".to_owned()));
        }
        check(&tasks).map_err(PipelineError::Meaning)?;
        Ok(Self { tasks, source, mentions: OnceLock::new() })
    }

    /// The place of the task of this label.
    pub fn find(&self, label: &str) -> Option<usize> {
        self.tasks.iter().position(|task| *task.label == *label)
    }

    /// Every template of every task.
    pub fn templates(&self) -> Vec<&Template> {
        self.tasks.iter().flat_map(Task::templates).collect()
    }
}

impl Task {
    /// Every template of the task.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = self.tool.config.templates();
        found.extend(self.tool.input.templates());
        found.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        found.extend(self.rules.iter().flat_map(Rule::templates));
        found
    }
}

impl Rule {
    /// Every template of the rule.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found: Vec<&Template> = self.when.template().into_iter().collect();
        found.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        if let Action::Retry(retry) = &self.action {
            let values = [&retry.attempts, &retry.delay, &retry.max_delay, &retry.jitter];
            found.extend(values.into_iter().flatten().flat_map(ValueTemplate::templates));
        }
        found
    }
}

fn check(tasks: &[Task]) -> Result<(), String> {
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

/// Compiles rules in the form a task's source has them, for work that is no pipeline.
pub fn compile_rules(rules: &Value) -> Result<Vec<Rule>, PipelineError> {
    let rules: Vec<RuleSource> = Vec::deserialize(rules)?;
    rules.into_iter().map(rule).collect()
}

fn task(source: TaskSource) -> Result<Task, PipelineError> {
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
    Ok(Task { label: source.name, tool, set: assignments(source.set)?, rules })
}

fn assignments(sources: Vec<AssignmentSource>) -> Result<Vec<Assignment>, PipelineError> {
    let compile = |source: AssignmentSource| {
        let value = ValueTemplate::compile(source.value)?;
        Ok(Assignment { scope: source.scope, path: source.path, value })
    };
    sources.into_iter().map(compile).collect()
}

fn rule(source: RuleSource) -> Result<Rule, PipelineError> {
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
    Ok(Rule { when, set: assignments(source.set)?, action })
}

fn jump(to: Option<Arc<str>>) -> Result<Jump, PipelineError> {
    match to.as_deref() {
        Some("previous" | "prev" | "_previous" | "@previous") => Ok(Jump::Previous),
        Some(_) => Ok(Jump::To(to.expect("matched just above"))),
        None => Err(PipelineError::Meaning("a jump names no task".to_owned())),
    }
}
