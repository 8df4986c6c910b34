//! Work of a step: a single tool, or a pipeline of tasks.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::context::Context;
use super::cursor::Cursor;
use super::kinds;
use super::policy::Labels;
use super::task::{self, DecodedTask, DefaultTimeout, TaskContext};
use super::{split, workbook};
use crate::assignment::Assignment;
use crate::document::{ControlTool, ControlToolKind, StepWork};
use crate::pipeline::{Pipeline, PipelineError, compile_rules};
use crate::tool::Selection;

/// Settings of the step that apply to its work.
#[derive(Debug)]
pub(super) struct Defaults<'a> {
    /// Arguments of the step. Each task's own arguments override them.
    pub(super) input: Option<Cursor<'a>>,
    /// Time limits of tasks without a timeout of their own.
    pub(super) time: DefaultTimeout,
    /// Projections of the step's result.
    pub(super) select: Vec<Selection>,
    /// Whether the work runs once per item.
    pub(super) looped: bool,
    /// Whether all items run within a single command.
    pub(super) local: bool,
}

/// Decoded work, and its effects on the step.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) work: StepWork,
    /// Assignments of a tool outside any pipeline.
    pub(super) set: Vec<Assignment>,
    /// Whether the work writes durable variables while it runs.
    pub(super) writes_ctx: bool,
}

/// Decodes the work of a step: a mapping, or a list of tasks.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    step: &Arc<str>,
    defaults: &Defaults<'_>,
) -> Option<Decoded> {
    if let Some(kind) = at.text() {
        cx.error("E012", at, "the tool is a bare word", kinds::rewrite(kind));
        return None;
    }
    let mut tasks = match at.is_list() {
        true => list(cx, at, defaults)?,
        false => vec![single(cx, at, step, defaults)?],
    };
    if let Some(last) = tasks.last_mut() {
        last.select(&defaults.select);
    }
    match tasks.as_slice() {
        [task] if task.own.is_some() => own(cx, at, tasks.pop()?, defaults),
        many if many.iter().any(|task| task.own.is_some()) => split::build(cx, at, tasks, defaults),
        [task] if task.is_plain() && !defaults.local => {
            let tool = tasks.pop()?.tool;
            Some(Decoded { work: StepWork::Tool(tool), set: Vec::new(), writes_ctx: false })
        }
        _ => pipeline(cx, at, &tasks),
    }
}

/// Decodes a single tool: a pipeline of one task with the step's name as its label.
fn single(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    step: &Arc<str>,
    defaults: &Defaults<'_>,
) -> Option<DecodedTask> {
    let item = item(cx, at)?;
    // In a reference to the workbook, `name` is the referenced task, not a label.
    let refers = item.at.get("kind").is_some_and(|kind| kind.text() == Some("workbook"));
    let label = item.label.filter(|_| !refers).unwrap_or_else(|| Arc::clone(step));
    let labels = Labels::new(vec![Arc::clone(&label)]);
    let around = TaskContext { input: defaults.input, time: defaults.time, labels: &labels };
    task::decode(cx, &item.at, &label, around)
}

fn list(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    defaults: &Defaults<'_>,
) -> Option<Vec<DecodedTask>> {
    let written: Vec<Cursor<'_>> = at.items().collect();
    if written.is_empty() {
        cx.error("E012", at, "the pipeline is empty", "write 'tool: {kind: …}'");
        return None;
    }
    let items: Vec<Option<PipelineEntry<'_>>> =
        written.iter().map(|written| item(cx, written)).collect();
    let named = labels(cx, &items);
    let labels = Labels::new(named.clone());
    let mut input = defaults.input;
    if let Some(shared) = input
        && items.len() > 1
        && !workbook::share(cx, &shared, items.len() - 1)
    {
        input = None;
    }
    let around = TaskContext { input, time: defaults.time, labels: &labels };
    let mut crossings = Vec::with_capacity(items.len());
    let mut tasks: Vec<Option<DecodedTask>> = Vec::with_capacity(items.len());
    for (item, label) in items.iter().zip(&named) {
        cx.crossings.clear();
        tasks.push(item.as_ref().and_then(|item| task::decode(cx, &item.at, label, around)));
        crossings.push(cx.crossings.take());
    }
    for (task, item) in tasks.iter().flatten().zip(items.iter().flatten()) {
        if task.own.is_some_and(|own| own != ControlToolKind::Playbook) && items.len() > 1 {
            let kind = &task.tool.kind;
            let message = format!("'{kind}' is done by the control plane, not within a pipeline");
            let help =
                format!("make it a step of its own: '- {{step: …, tool: {{kind: {kind}}}}}'");
            cx.error("E018", &item.at, message, help);
        }
    }
    let tasks: Option<Vec<DecodedTask>> = tasks.into_iter().collect();
    tasks.inspect(|tasks| split::check(cx, at, tasks, &crossings))
}

/// An entry of a pipeline: its mapping, and its label, if any.
struct PipelineEntry<'a> {
    at: Cursor<'a>,
    label: Option<Arc<str>>,
}

/// Decodes a task that is flat, `{kind, …}`, or nested under its label, `{label: {kind, …}}`.
fn item<'a>(cx: &mut Context<'_>, at: &'a Cursor<'a>) -> Option<PipelineEntry<'a>> {
    if !at.is_map() {
        let message = format!("a tool is a mapping, found {}", at.node.described());
        cx.error("E012", at, message, "write 'tool: {kind: …}'");
        return None;
    }
    if at.get("kind").is_some() {
        return Some(PipelineEntry { at: *at, label: name(cx, at) });
    }
    let mut nested = at.entries().filter(|(_, entry)| entry.get("kind").is_some());
    match (nested.next(), at.entries().count()) {
        (Some((key, entry)), 1) => {
            let message = "the tool is nested under its label";
            let rewrite = format!("write '{{name: {}, kind: …}}'", key.name);
            cx.older((key.at, entry.path), message, rewrite);
            Some(PipelineEntry { at: entry, label: Some(Arc::from(&*key.name)) })
        }
        (Some(_), _) => {
            let help = "write each task as '- {name: label, kind: …}'";
            cx.error("E012", at, "the task has several labels", help);
            None
        }
        (None, _) => {
            let help = match at.get("type").and_then(|written| written.text()) {
                Some(kind) => format!("write 'kind: {kind}' instead of 'type: {kind}'"),
                None => "add 'kind: python', or another kind".to_owned(),
            };
            cx.error("E011", at, "the tool has no 'kind'", help);
            None
        }
    }
}

/// Decodes the `name` of a task, if present.
fn name(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Arc<str>> {
    let name = at.get("name")?;
    match name.text() {
        Some(text) if !text.is_empty() => Some(Arc::from(text)),
        _ => {
            let message = "the label of a task is text";
            cx.error("E012", &name, message, "write a name, in quotes if it looks like a number");
            None
        }
    }
}

/// Returns the labels of all tasks: their own, or `task_<index>`.
fn labels(cx: &mut Context<'_>, items: &[Option<PipelineEntry<'_>>]) -> Vec<Arc<str>> {
    let mut labels: Vec<Arc<str>> = Vec::with_capacity(items.len());
    let mut lines: HashMap<Arc<str>, u32> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let written = item.as_ref().and_then(|item| item.label.clone());
        let label = written.unwrap_or_else(|| Arc::from(format!("task_{index}")));
        if let Some(item) = item {
            if let Some(line) = lines.get(&label) {
                let message = format!("the label '{label}' is taken on line {line} already");
                cx.error("E013", &item.at, message, "give every task of a step a name of its own");
            } else {
                lines.insert(Arc::clone(&label), item.at.node.at.line);
            }
        }
        cx.names.define(&label);
        labels.push(label);
    }
    labels
}

/// Reports a control-plane tool in a loop that a single worker runs.
pub(super) fn refuse_local(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    kind: &str,
    defaults: &Defaults<'_>,
) {
    if defaults.local {
        let message = format!("'{kind}' is done by the control plane, not within one worker");
        let help = "write 'loop: {spec: {policy: {exec: distributed}}}', or leave 'exec' out";
        cx.error("E018", at, message, help);
    }
}

fn own(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    task: DecodedTask,
    defaults: &Defaults<'_>,
) -> Option<Decoded> {
    refuse_local(cx, at, &task.tool.kind, defaults);
    if defaults.looped && !task.set.is_empty() {
        let message = "assignments beside this tool would be made once per item";
        let help = "assign in a rule: 'rules: [{when: \"{{ output.ok }}\", then: {do: continue, \
                    set: {…}}}]'";
        cx.error("E018", at, message, help);
    }
    let writes_ctx = task.writes_ctx();
    let rules = match compile_rules(&Value::Array(task.rules.source)) {
        Ok(rules) => rules,
        Err(error) => {
            uncompiled(cx, at, &error);
            Vec::new()
        }
    };
    let own = ControlTool { kind: task.own?, tool: task.tool, limit: task.limit, rules };
    Some(Decoded { work: StepWork::Own(Box::new(own)), set: task.set, writes_ctx })
}

fn pipeline(cx: &mut Context<'_>, at: &Cursor<'_>, tasks: &[DecodedTask]) -> Option<Decoded> {
    let writes_ctx = tasks.iter().any(DecodedTask::writes_ctx);
    // Mistakes of the tasks have already been reported.
    if cx.findings.has_errors() {
        return None;
    }
    let sources: Vec<Value> = tasks.iter().map(DecodedTask::source).collect();
    match Pipeline::compile(Arc::new(json!({ "tasks": sources }))) {
        Ok(pipeline) => {
            let work = StepWork::Pipeline(Arc::new(pipeline));
            Some(Decoded { work, set: Vec::new(), writes_ctx })
        }
        Err(error) => {
            uncompiled(cx, at, &error);
            None
        }
    }
}

/// Reports a source that does not compile. Sources are checked before, so this indicates a missing
/// check.
pub(super) fn uncompiled(cx: &mut Context<'_>, at: &Cursor<'_>, error: &PipelineError) {
    cx.error("E012", at, error.to_string(), "write the tasks as the guide shows them");
}

/// Decodes the workbook tasks that no step refers to, only to report their mistakes.
pub(super) fn check_unreferred(cx: &mut Context<'_>) {
    workbook::unreferred(cx, |cx, name, at| {
        let label: Arc<str> = Arc::from(name);
        let labels = Labels::new(vec![Arc::clone(&label)]);
        let around = TaskContext { input: None, time: DefaultTimeout::default(), labels: &labels };
        task::decode(cx, at, &label, around);
    });
}
