//! What a step runs.

use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::cursor::Cursor;
use super::{duration, keys, kinds, output, policy, set, value};
use crate::document::{Assignment, Tool};
use crate::template::ValueTemplate;
use crate::yaml::{Key, Kind};

/// Keys of `tool.spec` that are about the run rather than settings of the tool.
const SPEC_OWN_KEYS: &[&str] = &["policy", "timeout", "result"];

/// Names of a tool's arguments: the one to write, then older ones.
const INPUT_NAMES: &[&str] = &["input", "args", "with"];

/// What the step says about its tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults<'a> {
    /// Arguments that the tool's own replace.
    pub(super) input: Option<Cursor<'a>>,
    pub(super) timeout: Option<Duration>,
}

/// A tool and the assignments written beside it.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) tool: Tool,
    pub(super) set: Vec<Assignment>,
}

/// The tool of a step: a mapping, or a list of exactly one.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    defaults: Defaults<'_>,
) -> Option<Decoded> {
    if let Some(kind) = at.text() {
        cx.error("E012", at, "the tool is a bare word", kinds::rewrite(kind));
        return None;
    }
    if !at.is_list() {
        return task(cx, at, defaults);
    }
    let mut tasks: Vec<_> = at.items().map(|item| task(cx, &item, defaults)).collect();
    match tasks.len() {
        0 => {
            cx.error("E012", at, "the pipeline is empty", "write 'tool: {kind: …}'");
            None
        }
        1 => tasks.pop().flatten(),
        _ => {
            let help = "write one step per task, joined by 'next'";
            cx.unsupported(at.place(), "a pipeline of several tasks is", help);
            None
        }
    }
}

/// One task: flat `{kind, …}`, or nested under its label, `{label: {kind, …}}`.
fn task(cx: &mut Context<'_>, at: &Cursor<'_>, defaults: Defaults<'_>) -> Option<Decoded> {
    if !at.is_map() {
        let message = format!("a tool is a mapping, found {}", at.node.described());
        cx.error("E012", at, message, "write 'tool: {kind: …}'");
        return None;
    }
    if let Some(kind) = at.get("kind") {
        return flat(cx, at, &kind, defaults);
    }
    let mut nested = at.entries().filter(|(_, entry)| entry.get("kind").is_some());
    match (nested.next(), at.entries().count()) {
        (Some((key, entry)), 1) => {
            let message = "the tool is nested under its label";
            let rewrite = format!("write '{{name: {}, kind: …}}'", key.name);
            cx.older((key.at, entry.path), message, rewrite);
            task(cx, &entry, defaults)
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

fn flat(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    kind: &Cursor<'_>,
    defaults: Defaults<'_>,
) -> Option<Decoded> {
    let kind = kinds::decode(cx, kind);
    keys::refuse_removed(cx, at, keys::REMOVED_FROM_TOOLS);
    let spec = at.get("spec").filter(|spec| cx.is_map(spec, "write 'spec: {timeout: 30s}'"));
    let fields = fields(cx, at, spec.as_ref());
    let find = |name: &str| {
        let mut fields = fields.iter();
        let found = fields.find(|(key, value)| &*key.name == name && !value.node.is_null());
        found.map(|(_, value)| *value)
    };
    for name in ["eval", "policy"] {
        if let Some(found) = find(name) {
            policy::refuse(cx, &found);
        }
    }
    for name in ["output", "output_select"] {
        if let Some(found) = find(name) {
            output::check(cx, name, &found);
        }
    }
    let timeout = ["timeout", "timeout_seconds"].into_iter().find_map(find);
    let timeout = timeout.or(spec.as_ref().and_then(|spec| spec.get("timeout")));
    let timeout = match timeout {
        Some(timeout) => duration::timeout(cx, &timeout),
        None => defaults.timeout,
    };
    let mut set = set::decode(cx, at, &[]);
    if let Some(spec) = &spec {
        set.extend(set::decode(cx, spec, &[]));
    }
    let input = input(cx, &fields, defaults.input);
    if let Some(kind) = kind {
        kinds::require(cx, at, kind, find);
    }
    let raw = find("raw").is_some_and(|raw| raw.node.kind == Kind::Bool(true));
    let config = config(cx, &fields, kind == Some("python"), raw);
    let kind = Arc::from(kind?);
    let (select, idempotent) = (Vec::new(), true);
    let tool = Tool { kind, config, input, timeout, select, idempotent };
    Some(Decoded { tool, set })
}

/// The tool's settings: its own, then those some authors put under `spec`.
fn fields<'a>(
    cx: &mut Context<'_>,
    at: &'a Cursor<'a>,
    spec: Option<&'a Cursor<'a>>,
) -> Vec<(&'a Key, Cursor<'a>)> {
    let mut fields: Vec<_> = at.entries().filter(|(key, _)| &*key.name != "spec").collect();
    let Some(spec) = spec else { return fields };
    if let Some(policy) = spec.get("policy") {
        policy::refuse(cx, &policy);
    }
    if let Some(key) = spec.key("result") {
        let help = "remove it; results are kept whole";
        cx.warning_at("W114", key, "'result' under 'spec' has no effect in this version", help);
    }
    let own = at.names();
    let nested = spec.entries().filter(|(key, _)| !SPEC_OWN_KEYS.contains(&&*key.name));
    let nested: Vec<_> = nested.filter(|(key, _)| !own.contains(&*key.name)).collect();
    if !nested.is_empty() {
        let names: Vec<&str> = nested.iter().map(|(key, _)| &*key.name).collect();
        let message = format!("settings of the tool stand under 'spec': {}", names.join(", "));
        cx.older(spec.place(), message, "write them beside 'kind'");
    }
    fields.extend(nested);
    fields
}

fn config(
    cx: &mut Context<'_>,
    fields: &[(&Key, Cursor<'_>)],
    python: bool,
    raw: bool,
) -> ValueTemplate {
    let mut config = Vec::new();
    for (key, field) in fields {
        let value = match &*key.name {
            "kind" | "name" | "desc" | "description" | "set" | "set_ctx" | "set_iter"
            | "timeout" | "timeout_seconds" | "eval" | "policy" => continue,
            name if INPUT_NAMES.contains(&name) => continue,
            "raw" if python => continue,
            "code" if raw => ValueTemplate::Literal(value::literal(cx, field)),
            "auth" | "credential" if field.text().is_some() => {
                let help = "give the tool what it needs in 'headers' or 'env' until then";
                cx.unsupported(field.place(), "a stored credential is", help);
                continue;
            }
            _ => value::decode(cx, field),
        };
        config.push((key.name.to_string(), value));
    }
    value::map(config)
}

/// The tool's arguments over the step's.
fn input(
    cx: &mut Context<'_>,
    fields: &[(&Key, Cursor<'_>)],
    defaults: Option<Cursor<'_>>,
) -> ValueTemplate {
    let mut own: Option<Cursor<'_>> = None;
    for (key, field) in fields {
        if !INPUT_NAMES.contains(&&*key.name) {
            continue;
        }
        if own.is_some() {
            let message = format!("'{}' repeats the tool's arguments", key.name);
            cx.error_at("E016", (key.at, field.path), message, "keep everything under 'input'");
            continue;
        }
        if &*key.name != "input" {
            let message = format!("'{}' is the older name of 'input'", key.name);
            cx.older((key.at, field.path), message, "write 'input'");
        }
        own = Some(*field);
    }
    let own = own.filter(|own| !own.node.is_null());
    if let Some(own) = own.filter(|own| !own.is_map()) {
        let templated = own.node.text().is_some_and(crate::template::Template::is_template);
        if templated && defaults.is_none() {
            return value::decode(cx, &own);
        }
        cx.expected(&own, "a mapping", "name each argument: 'input: {name: value}'");
        return value::empty();
    }
    let taken = own.map(|own| own.names()).unwrap_or_default();
    let inherited = defaults.iter().flat_map(Cursor::entries);
    let inherited = inherited.filter(|(key, _)| !taken.contains(&*key.name));
    let entries = inherited.chain(own.iter().flat_map(Cursor::entries));
    value::map(
        entries.map(|(key, entry)| (key.name.to_string(), value::decode(cx, &entry))).collect(),
    )
}
