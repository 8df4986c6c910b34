//! Root of a playbook document.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_template::ValueTemplate;
use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::{
    executor, flow, keychain, keys, metadata, names, notify, tool, value, workbook, workflow,
};
use crate::document::{NotifySpec, Playbook, Step, StepWork};
use crate::graph::Graph;
use crate::yaml::NodeKind;

const KEYS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "workload",
    "keychain",
    "workbook",
    "workflow",
    "executor",
    "spec",
    "strict",
];
const OLDER_KEYS: &[&str] = &["vars", "tracing"];
const API_VERSIONS: &[&str] = &["noetl.io/v2", "noetl.io/v10"];

/// Kinds of documents that the catalog stores besides playbooks. No further diagnostic about such a
/// document would help its author.
const OTHER_KINDS: &[&str] = &["subscription", "agent", "mcp", "credential", "memory"];

/// Decodes the playbook. Returns `None` if an error was reported.
pub(super) fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Option<Playbook> {
    if !root.is_map() {
        let help = "a playbook begins with 'apiVersion: noetl.io/v2' and 'kind: Playbook'";
        cx.expected(root, "a mapping", help);
        return None;
    }
    if !is_playbook(cx, root) {
        return None;
    }
    api_version(cx, root);
    cx.strict = strict(cx, root);
    if let Some(key) = root.key("tracing") {
        let help = "remove it; who starts an execution asks for a trace with 'trace'";
        cx.warning_at("W114", key, "'tracing' has no effect", help);
    }
    let misnamed = if root.get("workflow").is_none() { workflow::MISNAMED } else { &[] };
    keys::warn_unknown(cx, root, KEYS, |name| {
        OLDER_KEYS.contains(&name) || misnamed.contains(&name)
    });
    let metadata = metadata::decode(cx, root);
    let workload = workload(cx, root);
    let vars = vars(cx, root);
    let (spec, notify) = spec(cx, root);
    let keychain = keychain::decode(cx, root);
    let executor = executor::decode(cx, root);
    workbook::decode(cx, root);
    let workflow = workflow::decode(cx, root, executor.timeout);
    tool::check_unreferred(cx);
    let workflow = workflow?;
    names::warn_undefined(cx, root, &keychain);
    if cx.findings.has_errors() {
        return None;
    }
    let arcs: Vec<Vec<_>> = workflow
        .steps
        .iter()
        .map(|step| step.router.arcs.iter().map(|arrow| arrow.to).collect())
        .collect();
    let graph = match Graph::new(&arcs, workflow.entry) {
        Ok(graph) => graph,
        Err(error) => {
            let help = "split the workflow into several playbooks";
            cx.error("E070", root, error.to_string(), help);
            return None;
        }
    };
    flow::warn_split(cx, root, &workflow.steps, &graph);
    Some(Playbook {
        name: metadata.name,
        path: metadata.path,
        workload,
        vars,
        spec,
        entry: workflow.entry,
        implicit_end: workflow.implicit_end,
        no_next_is_error: executor.no_next_is_error,
        final_step: workflow.final_step,
        deadline: executor.deadline,
        notify,
        keychain,
        first_tasks: Arc::new(first_tasks(&workflow.steps)),
        steps: workflow.steps,
        graph,
        by_name: std::mem::take(&mut cx.steps),
    })
}

/// Returns the label of the first task of each pipeline. Omits single tools, whose label is the
/// name of their step.
fn first_tasks(steps: &[Step]) -> BTreeMap<Arc<str>, Arc<str>> {
    let first = |step: &Step| match &step.work {
        StepWork::Pipeline(pipeline) => {
            let label = pipeline.tasks.first()?.label.clone();
            (label != step.name).then(|| (step.name.clone(), label))
        }
        StepWork::Split(split) => Some((step.name.clone(), split.tasks().next()?.label.clone())),
        StepWork::Route | StepWork::Tool(_) | StepWork::Own(_) => None,
    };
    steps.iter().filter_map(first).collect()
}

/// Returns `true` if the document should be decoded as a playbook.
fn is_playbook(cx: &mut Context<'_>, root: &Cursor<'_>) -> bool {
    let Some(kind) = root.get("kind") else {
        cx.error("E002", root, "the document has no 'kind'", "add 'kind: Playbook'");
        return true;
    };
    match kind.text() {
        Some("Playbook") => true,
        Some(other) => {
            let foreign = OTHER_KINDS.contains(&other.to_lowercase().as_str());
            let message = format!("the document is a '{other}', not a Playbook");
            let help = if foreign {
                "only playbooks can be checked and executed"
            } else {
                "write 'kind: Playbook'"
            };
            cx.error("E002", &kind, message, help);
            !foreign
        }
        None => {
            let message = format!("'kind' is a word, found {}", kind.node.described());
            cx.error("E002", &kind, message, "write 'kind: Playbook'");
            true
        }
    }
}

fn api_version(cx: &mut Context<'_>, root: &Cursor<'_>) {
    let help = "write 'apiVersion: noetl.io/v2'";
    match root.get("apiVersion") {
        Some(version) => match version.text() {
            Some(text) if API_VERSIONS.contains(&text) => {}
            Some(text) => {
                cx.error("E001", &version, format!("API version '{text}' is not supported"), help);
            }
            None => cx.error("E001", &version, "the API version is not text", help),
        },
        None => cx.error("E001", root, "the document has no 'apiVersion'", help),
    }
}

/// Decodes `strict`. If `true`, unknown keys are errors.
fn strict(cx: &mut Context<'_>, root: &Cursor<'_>) -> bool {
    let Some(written) = root.get("strict") else { return false };
    match written.node.kind {
        NodeKind::Bool(answer) => answer,
        _ => {
            cx.expected(&written, "true or false", "write true or false");
            false
        }
    }
}

fn workload(cx: &mut Context<'_>, root: &Cursor<'_>) -> ValueTemplate {
    let value = root.get("workload");
    let value =
        value.filter(|value| cx.is_map(value, "name each input: 'workload: {name: value}'"));
    value.map_or_else(value::empty, |value| value::decode(cx, &value))
}

/// Decodes the root key `vars`: initial variables of the execution.
fn vars(cx: &mut Context<'_>, root: &Cursor<'_>) -> Vec<(String, ValueTemplate)> {
    let (Some(value), Some(key)) = (root.get("vars"), root.key("vars")) else {
        return Vec::new();
    };
    let message = "'vars' is an older section; its names begin as ctx variables";
    cx.older(key, message, "put constants into 'workload', and assign with 'set'");
    if !cx.is_map(&value, "name each variable: 'vars: {name: value}'") {
        return Vec::new();
    }
    let entries = value.entries().map(|(key, entry)| {
        cx.names.define(&key.name);
        (key.name.to_string(), value::decode(cx, &entry))
    });
    entries.collect()
}

/// Decodes the root key `spec`: notifications, and data that templates see as `spec`.
fn spec(cx: &mut Context<'_>, root: &Cursor<'_>) -> (Option<Value>, Option<NotifySpec>) {
    let (Some(value), Some(key)) = (root.get("spec"), root.key("spec")) else {
        return (None, None);
    };
    let notify = notify::decode(cx, &value);
    let mut data = value::literal(cx, &value);
    if let Value::Object(entries) = &mut data {
        entries.remove("notify");
        if entries.is_empty() {
            return (None, notify);
        }
    }
    let message = "the root key 'spec' is data that templates see as 'spec'";
    cx.older(key, message, "put it into 'workload'");
    (Some(data), notify)
}
