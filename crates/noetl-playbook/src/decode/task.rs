//! One task: a tool with its arguments, its assignments and its rules.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::cursor::Cursor;
use super::fields::{self, Field};
use super::policy::{self, Labels, Rules, Tasks};
use super::{duration, keys, kinds, select, set, value, workbook};
use crate::document::{Assignment, OwnKind, Selection, TimeLimit, Tool};
use crate::pipeline::{Rule, compile_rules};
use crate::template::{Mention, Template, ValueTemplate};
use crate::yaml::Kind;

/// What surrounds a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    /// Arguments of the step, which the task's own replace.
    pub(super) input: Option<Cursor<'a>>,
    /// What the step and the executor say about the time a task may take.
    pub(super) time: Time,
    /// Labels of all tasks of the step.
    pub(super) labels: &'a Labels,
}

/// How long a task may take that does not say so itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    /// What the step says.
    pub(super) step: Option<Duration>,
    /// What holds for every tool that a worker runs.
    pub(super) worker: Option<Duration>,
}

/// A task as far as it is the same in every place.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) label: Arc<str>,
    pub(super) tool: Tool,
    /// How long it may take, when it is work of the control plane and a template says so.
    pub(super) limit: Option<TimeLimit>,
    pub(super) set: Vec<Assignment>,
    pub(super) rules: Rules,
    /// Which work of the control plane it is.
    pub(super) own: Option<OwnKind>,
    /// Settings that are literal although they look like templates.
    raw: Vec<String>,
}

/// Reads the mapping of a task, `{kind, …}`.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    label: &Arc<str>,
    around: Around<'_>,
) -> Option<Task> {
    resolve(cx, &[*at], &[], label, around)
}

/// Follows references into the workbook, until a layer names the tool that runs.
fn resolve(
    cx: &mut Context<'_>,
    layers: &[Cursor<'_>],
    passed: &[Rc<str>],
    label: &Arc<str>,
    around: Around<'_>,
) -> Option<Task> {
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
    let found = workbook::refer(cx, lowest, passed)?;
    let passed: Vec<_> = passed.iter().cloned().chain([Rc::clone(&found.name)]).collect();
    let task = workbook::with_cursor(&found.entry, |tool| {
        // An outer reference's cursors live longer than this one's; shorten them to the same.
        let layers: Vec<Cursor<'_>> = layers.iter().copied().chain([*tool]).collect();
        resolve(cx, &layers, &passed, label, around)
    })?;
    let given = argument_names(&task.tool.input);
    let lacks = |name: &&Rc<str>| given.as_ref().is_some_and(|given| !given.contains(&***name));
    if let Some(name) = found.entry.expects.iter().find(lacks) {
        let message = format!("the workbook task '{}' expects an argument '{name}'", found.name);
        cx.error("E014", layers.first()?, message, format!("add 'input: {{{name}: …}}'"));
    }
    Some(task)
}

/// The names of arguments; none when they are known only when they are rendered.
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
    around: Around<'_>,
) -> Option<Task> {
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
        if let Some(found) = find(name) {
            picked.extend(select::decode(cx, name, &found));
        }
    }
    let inherited = around.time.step.or(around.time.worker.filter(|_| own.is_none()));
    let written = written_timeout(&settings, &specs);
    // One that is known only when it is rendered is a setting like others; the tool reads it.
    let templated = written.filter(duration::is_template);
    let timeout = match (templated, written) {
        (Some(_), _) => None,
        (None, Some(written)) => duration::timeout(cx, &written).or(inherited),
        (None, None) => inherited,
    };
    let set = assignments(cx, layers, &specs);
    let at = layers.first()?;
    if let Some(kind) = kind {
        let given = find("input").map(|input| input.names()).unwrap_or_default();
        kinds::require(cx, at, kind, &given, find);
    }
    // A worker renders for its tools; what the control plane renders is recorded.
    cx.secrets = own.is_none();
    let input = fields::input(cx, &settings, around.input, input_names);
    let raw = find("raw").is_some_and(|raw| raw.node.kind == Kind::Bool(true));
    let config = config(cx, &settings, input_names, kind == Some("python"), raw);
    let mut config = config;
    // What the control plane does has its time from the command, not from a setting.
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
    Some(Task { label: Arc::clone(label), tool, limit, set, rules, own, raw })
}

/// Rules under `spec.policy`, `policy` or `eval`, the first layer that has any.
fn rules(
    cx: &mut Context<'_>,
    settings: &[Field<'_>],
    specs: &[(usize, Cursor<'_>)],
    tasks: Tasks<'_>,
) -> Rules {
    let mut rules = Rules::default();
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
        cx.older(beside.place(), message, "write it under 'spec': 'spec: {policy: …}'");
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

/// The nearest timeout that is written.
fn written_timeout<'a>(
    settings: &[Field<'a>],
    specs: &'a [(usize, Cursor<'a>)],
) -> Option<Cursor<'a>> {
    let names = ["timeout", "timeout_seconds"];
    let beside = names.iter().find_map(|name| fields::find(settings, name));
    beside.or_else(|| specs.iter().find_map(|(_, spec)| spec.get("timeout")))
}

/// Assignments of the uppermost layer that has any.
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
        Kind::Bool(answer) => answer,
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

impl Task {
    /// The task in the form a pipeline's source has it.
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
            // Half a millisecond is still a timeout.
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

    /// Whether it can be one plain call, rendered before a worker has it. Secrets are not known
    /// there, and fields are picked from a result where it is made.
    pub(super) fn is_plain(&self) -> bool {
        let templates = [self.tool.config.templates(), self.tool.input.templates()].concat();
        let secret = templates.iter().any(|template| template.names().contains("keychain"));
        let picks = !self.tool.select.is_empty();
        self.rules.source.is_empty() && self.set.is_empty() && !picks && !secret
    }

    /// Returns what the task's templates name, those of its rules included.
    pub(super) fn mentions(&self) -> BTreeSet<Mention> {
        let mut templates = [self.tool.config.templates(), self.tool.input.templates()].concat();
        templates.extend(self.limit.iter().flat_map(|limit| limit.value.templates()));
        templates.extend(self.set.iter().flat_map(|assignment| assignment.value.templates()));
        // Rules that can't be compiled are reported where they are written.
        let rules = compile_rules(&Value::Array(self.rules.source.clone())).unwrap_or_default();
        templates.extend(rules.iter().flat_map(Rule::templates));
        templates.iter().flat_map(|template| template.mentions()).cloned().collect()
    }

    /// Adds what the step selects from its result.
    pub(super) fn select(&mut self, selections: &[Selection]) {
        self.tool.select.extend(selections.iter().cloned());
    }

    /// Whether it writes durable variables, by itself or in its rules.
    pub(super) fn writes_ctx(&self) -> bool {
        let writes = |assignment: &Assignment| assignment.scope == crate::document::SetScope::Ctx;
        self.set.iter().any(writes) || self.rules.set.iter().any(writes)
    }
}
