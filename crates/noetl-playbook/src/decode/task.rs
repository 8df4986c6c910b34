//! A task: a tool with its arguments, assignments, and rules.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use noetl_template::{Mention, Template, ValueTemplate};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::cursor::Cursor;
use super::fields::{self, Field};
use super::policy::{self, DecodedRules, Labels, Tasks};
use super::{duration, keys, kinds, select, set, value, workbook};
use crate::assignment::Assignment;
use crate::document::{ControlToolKind, TimeLimit};
use crate::pipeline::{PolicyRule, compile_rules};
use crate::tool::{Selection, Tool};
use crate::yaml::NodeKind;

/// Context of a task: settings of its step.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskContext<'a> {
    /// Arguments of the step. The task's own arguments override them.
    pub(super) input: Option<Cursor<'a>>,
    /// Default time limits from the step and the executor.
    pub(super) time: DefaultTimeout,
    /// Labels of all tasks of the step.
    pub(super) labels: &'a Labels,
}

/// Time limits of a task without a timeout of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DefaultTimeout {
    /// Timeout from the step, which takes precedence over `worker`.
    pub(super) step: Option<Duration>,
    /// Default timeout of every tool that a worker runs.
    pub(super) worker: Option<Duration>,
}

/// A decoded task, independent of its position in a step.
#[derive(Debug)]
pub(super) struct DecodedTask {
    pub(super) label: Arc<str>,
    pub(super) tool: Tool,
    /// Time limit of a control-plane tool, if a template determines it.
    pub(super) limit: Option<TimeLimit>,
    pub(super) set: Vec<Assignment>,
    pub(super) rules: DecodedRules,
    /// Kind of control-plane tool, or `None` if a worker runs the task.
    pub(super) own: Option<ControlToolKind>,
    /// Names of settings that are literal although they look like templates.
    raw: Vec<String>,
}

/// Decodes the mapping of a task, `{kind, …}`.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    label: &Arc<str>,
    around: TaskContext<'_>,
) -> Option<DecodedTask> {
    resolve(cx, &[*at], &[], label, around)
}

/// Follows references into the workbook until a layer names the tool that runs.
fn resolve(
    cx: &mut Context<'_>,
    layers: &[Cursor<'_>],
    passed: &[Rc<str>],
    label: &Arc<str>,
    around: TaskContext<'_>,
) -> Option<DecodedTask> {
    let lowest = layers.last()?;
    let Some(kind) = lowest.get("kind") else {
        let message = "the workbook task's tool is not a mapping with 'kind'";
        cx.error("E014", lowest, message, "write 'tool: {kind: …}'; one task runs one tool");
        return None;
    };
    let kind = kinds::decode(cx, &kind);
    if kind != Some("workbook") {
        return flat(cx, layers, kind, label, around);
    }
    if let (true, Some(key)) =
        (layers.len() == 1 && lowest.key("name").is_none(), lowest.key("task"))
    {
        cx.older(key, "'task' is the older name of a workbook reference", "write 'name'");
    }
    let task_ref = workbook::refer(cx, lowest, passed)?;
    let passed: Vec<_> = passed.iter().cloned().chain([Rc::clone(&task_ref.name)]).collect();
    let task = workbook::with_cursor(&task_ref.entry, |tool| {
        // Cursors of an outer reference have a longer lifetime. Copying shortens it to that of this
        // one.
        let layers: Vec<Cursor<'_>> = layers.iter().copied().chain([*tool]).collect();
        resolve(cx, &layers, &passed, label, around)
    })?;
    let names = argument_names(&task.tool.input);
    let lacks = |name: &&Rc<str>| names.as_ref().is_some_and(|names| !names.contains(&***name));
    if let Some(name) = task_ref.entry.expects.iter().find(lacks) {
        let message = format!("the workbook task '{}' expects an argument '{name}'", task_ref.name);
        cx.error("E014", layers.first()?, message, format!("add 'input: {{{name}: …}}'"));
    }
    Some(task)
}

/// Returns the names of arguments, or `None` if they are unknown until rendering.
fn argument_names(input: &ValueTemplate) -> Option<HashSet<&str>> {
    match input {
        ValueTemplate::Literal(Value::Object(entries)) => {
            Some(entries.keys().map(String::as_str).collect())
        }
        ValueTemplate::Map(entries) => Some(entries.iter().map(|(name, _)| &**name).collect()),
        ValueTemplate::Template(_) => None,
        ValueTemplate::Literal(_) | ValueTemplate::List(_) => Some(HashSet::new()),
    }
}

fn flat(
    cx: &mut Context<'_>,
    layers: &[Cursor<'_>],
    kind: Option<&'static str>,
    label: &Arc<str>,
    around: TaskContext<'_>,
) -> Option<DecodedTask> {
    for layer in layers {
        keys::refuse_removed(cx, layer, keys::REMOVED_FROM_TOOLS);
    }
    let specs = fields::specs(cx, layers);
    let input_names = fields::input_names(kind);
    let settings = fields::collect(cx, layers, &specs, input_names);
    let find = |name: &str| fields::find(&settings, name);
    let own = kind.and_then(kinds::own);
    let tasks = match own {
        Some(_) if around.labels.is_single() => Tasks::Alone,
        _ => {
            let first = around.labels.iter().next() == Some(&**label);
            Tasks::Labelled { labels: around.labels, first }
        }
    };
    let rules = rules(cx, &settings, &specs, tasks);
    let mut picked = Vec::new();
    for name in ["output"].iter().chain(select::NAMES) {
        if let Some(selection) = find(name) {
            picked.extend(select::decode(cx, name, &selection));
        }
    }
    let inherited = around.time.step.or(around.time.worker.filter(|_| own.is_none()));
    let written = written_timeout(&settings, &specs);
    // A templated timeout is passed on as an ordinary setting, which the tool reads.
    let templated = written.filter(duration::is_template);
    let timeout = match (templated, written) {
        (Some(_), _) => None,
        (None, Some(written)) => duration::timeout(cx, &written).or(inherited),
        (None, None) => inherited,
    };
    let set = assignments(cx, layers, &specs);
    let at = layers.first()?;
    if let Some(kind) = kind {
        let arguments = find("input").map(|input| input.names()).unwrap_or_default();
        kinds::require(cx, at, kind, &arguments, find);
    }
    // A worker renders the settings of its tools. Values that the control plane renders are
    // recorded in the event log, so they must not contain secrets.
    cx.secrets = own.is_none();
    let input = fields::input(cx, &settings, around.input, input_names);
    let raw = find("raw").is_some_and(|raw| raw.node.kind == NodeKind::Bool(true));
    let config = config(cx, &settings, input_names, kind == Some("python"), raw);
    let mut config = config;
    // The time limit of a control-plane tool belongs to the command, not to its settings.
    let mut limit = None;
    if let Some(templated) = templated {
        let value = value::decode(cx, &templated);
        match own {
            Some(_) => limit = Some(TimeLimit { key: "tool.timeout", value }),
            None => config.push(("timeout".to_owned(), value)),
        }
    }
    cx.secrets = false;
    let idempotent = idempotent(cx, find("idempotent"));
    let raw = config.iter().filter(|(_, value)| looks_like_template(value));
    let raw = raw.map(|(name, _)| name.clone()).collect();
    let config = value::map(config);
    let tool = Tool { kind: Arc::from(kind?), config, input, timeout, select: picked, idempotent };
    Some(DecodedTask { label: Arc::clone(label), tool, limit, set, rules, own, raw })
}

/// Decodes the rules under `spec.policy` of the uppermost layer that has one, then those under
/// `policy` and `eval`.
fn rules(
    cx: &mut Context<'_>,
    settings: &[Field<'_>],
    specs: &[(usize, Cursor<'_>)],
    tasks: Tasks<'_>,
) -> DecodedRules {
    let mut rules = DecodedRules::default();
    for (_, spec) in specs {
        if let Some(key) = spec.key("result") {
            let help = "remove it; a large result is kept beside the log by itself";
            cx.warning_at("W114", key, "'result' under 'spec' has no effect", help);
        }
    }
    if let Some(policy) = specs.iter().find_map(|(_, spec)| spec.get("policy")) {
        rules = policy::decode(cx, &policy, tasks);
    }
    if let Some(beside) = fields::find(settings, "policy") {
        let message = "the policy stands beside 'kind'";
        cx.older(beside.position(), message, "write it under 'spec': 'spec: {policy: …}'");
        let more = policy::decode(cx, &beside, tasks);
        rules.source.extend(more.source);
        rules.set.extend(more.set);
    }
    if let Some(eval) = fields::find(settings, "eval") {
        let more = policy::eval(cx, &eval, tasks);
        rules.source.extend(more.source);
        rules.set.extend(more.set);
    }
    rules
}

/// Returns the timeout beside `kind`, or else the one under `spec`. Of several, the uppermost
/// layer's.
fn written_timeout<'a>(
    settings: &[Field<'a>],
    specs: &'a [(usize, Cursor<'a>)],
) -> Option<Cursor<'a>> {
    let names = ["timeout", "timeout_seconds"];
    let beside = names.iter().find_map(|name| fields::find(settings, name));
    beside.or_else(|| specs.iter().find_map(|(_, spec)| spec.get("timeout")))
}

/// Decodes the assignments of the uppermost layer that has any.
fn assignments(
    cx: &mut Context<'_>,
    layers: &[Cursor<'_>],
    specs: &[(usize, Cursor<'_>)],
) -> Vec<Assignment> {
    for (index, layer) in layers.iter().enumerate() {
        let mut set = set::decode(cx, layer, &[]);
        for (_, spec) in specs.iter().filter(|(of, _)| *of == index) {
            set.extend(set::decode(cx, spec, &[]));
        }
        if !set.is_empty() {
            return set;
        }
    }
    Vec::new()
}

fn idempotent(cx: &mut Context<'_>, written: Option<Cursor<'_>>) -> bool {
    let Some(written) = written else { return true };
    match written.node.kind {
        NodeKind::Bool(answer) => answer,
        _ => {
            cx.expected(&written, "true or false", "write true or false");
            true
        }
    }
}

fn config(
    cx: &mut Context<'_>,
    settings: &[Field<'_>],
    input_names: &[&str],
    python: bool,
    raw: bool,
) -> Vec<(String, ValueTemplate)> {
    let mut config: Vec<(String, ValueTemplate)> = Vec::new();
    let both = fields::find(settings, "auth").is_some();
    for field in settings {
        let (key, at) = (field.key, &field.value);
        let value = match &*key.name {
            "kind" | "name" | "task" | "desc" | "description" | "set" | "set_ctx" | "set_iter"
            | "timeout" | "timeout_seconds" | "eval" | "policy" | "output" | "output_select"
            | "select" | "idempotent" => continue,
            name if input_names.contains(&name) => continue,
            "raw" if python => continue,
            "code" if raw => ValueTemplate::Literal(value::literal(cx, at)),
            "credential" => {
                if both {
                    let message = "'credential' repeats 'auth'";
                    cx.error_at("E016", (key.at, at.path), message, "keep 'auth'");
                    continue;
                }
                let message = "'credential' is the older name of 'auth'";
                cx.older((key.at, at.path), message, "write 'auth'");
                config.push(("auth".to_owned(), value::decode(cx, at)));
                continue;
            }
            _ => value::decode(cx, at),
        };
        config.push((key.name.to_string(), value));
    }
    config
}

fn looks_like_template(value: &ValueTemplate) -> bool {
    let text = match value {
        ValueTemplate::Literal(Value::String(text)) => text,
        _ => return false,
    };
    Template::is_template(text)
}

impl DecodedTask {
    /// Returns the task in the form of a pipeline's source.
    pub(super) fn source(&self) -> Value {
        let mut task = Map::new();
        let mut put = |name: &str, value: Value| {
            let empty = match &value {
                Value::Array(items) => items.is_empty(),
                Value::Object(entries) => entries.is_empty(),
                _ => false,
            };
            if !empty {
                task.insert(name.to_owned(), value);
            }
        };
        put("name", Value::from(&*self.label));
        put("kind", Value::from(&*self.tool.kind));
        put("config", value::source(&self.tool.config));
        put("input", value::source(&self.tool.input));
        put("raw", json!(self.raw));
        if let Some(timeout) = self.tool.timeout {
            let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            // A positive timeout below a millisecond rounds up to one.
            put("timeout_ms", Value::from(millis.max(1)));
        }
        if !self.tool.idempotent {
            put("idempotent", Value::Bool(false));
        }
        put("set", set::source(&self.set));
        put("select", json!(self.tool.select));
        put("rules", Value::Array(self.rules.source.clone()));
        Value::Object(task)
    }

    /// Returns `true` if the task can be a plain tool call that the control plane renders. The
    /// control plane has no secrets, and the worker applies projections to a result.
    pub(super) fn is_plain(&self) -> bool {
        let templates = [self.tool.config.templates(), self.tool.input.templates()].concat();
        let secret = templates.iter().any(|template| template.names().contains("keychain"));
        let picks = !self.tool.select.is_empty();
        self.rules.source.is_empty() && self.set.is_empty() && !picks && !secret
    }

    /// Returns the names that the task's templates refer to, including those of its rules.
    pub(super) fn mentions(&self) -> BTreeSet<Mention> {
        let mut templates = [self.tool.config.templates(), self.tool.input.templates()].concat();
        templates.extend(self.limit.iter().flat_map(|limit| limit.value.templates()));
        templates.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        // Rules that don't compile are reported at their position in the document.
        let rules = compile_rules(&Value::Array(self.rules.source.clone())).unwrap_or_default();
        templates.extend(rules.iter().flat_map(PolicyRule::templates));
        templates.iter().flat_map(|template| template.mentions()).cloned().collect()
    }

    /// Adds the projections of the step.
    pub(super) fn select(&mut self, selections: &[Selection]) {
        self.tool.select.extend(selections.iter().cloned());
    }

    /// Returns `true` if the task or its rules write durable variables.
    pub(super) fn writes_ctx(&self) -> bool {
        let writes = |assignment: &Assignment| assignment.scope == crate::assignment::SetScope::Ctx;
        self.set.iter().any(writes) || self.rules.set.iter().any(writes)
    }
}
