//! One step.

use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::cursor::Cursor;
use super::tool::{self, Defaults};
use super::{duration, keys, r#loop, next, output, policy, set};
use crate::document::{Assignment, FailureMode, Join, Mode, OnError, Router, Step, Tool, Work};

const KEYS: &[&str] = &[
    "step",
    "desc",
    "description",
    "tool",
    "loop",
    "next",
    "set",
    "input",
    "output",
    "spec",
    "join",
];
const OLDER_KEYS: &[&str] = &["args", "vars", "when", "set_ctx", "set_iter"];
const SPEC_KEYS: &[&str] = &["timeout", "on_error", "next_mode", "policy"];
const JOINS: &[&str] = &["all", "each", "any"];

/// A step under the name that was found for it. Whatever is wrong with it is reported, and the
/// rest of it is decoded all the same.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>, name: Arc<str>) -> Step {
    keys::refuse_removed(cx, at, keys::REMOVED_FROM_STEPS);
    keys::warn_unknown(cx, at, KEYS, |key| {
        let misnames = name.is_empty() && matches!(key, "name" | "id");
        misnames || OLDER_KEYS.contains(&key) || is_removed(key)
    });
    let spec = spec(cx, at);
    refuse(cx, at);
    let has_removed = at.entries().any(|(key, _)| is_removed(&key.name));
    if at.get("tool").is_none() && at.get("next").is_none() && !has_removed {
        let help = "add 'tool: {kind: noop}' if it does nothing, or 'next' if it only routes";
        cx.error("E010", at, format!("step '{name}' has neither 'tool' nor 'next'"), help);
    }
    let (tool, mut set) = decode_tool(cx, at, spec.timeout);
    set.extend(set::decode(cx, at, &["vars"]));
    let router = match at.get("next") {
        Some(next) => next::decode(cx, &next, spec.next_mode),
        None => Router::default(),
    };
    Step {
        name,
        work: tool.map_or(Work::Route, Work::Tool),
        repeat: None,
        when: None,
        admit: None,
        timeout: spec.timeout,
        failure: FailureMode::default(),
        set,
        router,
        join: join(cx, at),
        on_error: spec.on_error,
    }
}

fn is_removed(name: &str) -> bool {
    keys::REMOVED_FROM_STEPS.iter().any(|(removed, _)| *removed == name)
}

/// Constructs of the language that this version does not run.
fn refuse(cx: &mut Context<'_>, at: &Cursor<'_>) {
    if let Some(found) = at.get("loop") {
        r#loop::refuse(cx, &found);
    }
    if let Some(key) = at.key("when") {
        let help = "put the condition on the arcs that lead to this step";
        cx.unsupported(key, "a condition on the step itself is", help);
    }
    if let Some(found) = at.get("output") {
        output::check(cx, "output", &found);
    }
}

fn decode_tool(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    timeout: Option<Duration>,
) -> (Option<Tool>, Vec<Assignment>) {
    let older = at.get("args");
    if let (Some(_), Some(key)) = (&older, at.key("args")) {
        if at.key("input").is_some() {
            let message = "'args' repeats the step's arguments";
            cx.error_at("E016", key, message, "keep everything under 'input'");
        } else {
            cx.older(key, "'args' is the older name of 'input'", "write 'input'");
        }
    }
    let input = at.get("input").or(older);
    let input =
        input.filter(|input| cx.is_map(input, "name each argument: 'input: {name: value}'"));
    let Some(tool) = at.get("tool") else {
        if let Some(input) = input {
            let help = "remove it, or add the tool it is for";
            cx.warning("W114", &input, "a step without a tool has no use for arguments", help);
        }
        return (None, Vec::new());
    };
    match tool::decode(cx, &tool, Defaults { input, timeout }) {
        Some(decoded) => (Some(decoded.tool), decoded.set),
        None => (None, Vec::new()),
    }
}

/// What `spec` says.
#[derive(Debug, Default)]
struct Spec {
    timeout: Option<Duration>,
    on_error: OnError,
    next_mode: Option<Mode>,
}

fn spec(cx: &mut Context<'_>, at: &Cursor<'_>) -> Spec {
    let mut spec = Spec::default();
    let Some(found) = at.get("spec") else {
        return spec;
    };
    if !cx.is_map(&found, "write 'spec: {timeout: 30s}'") {
        return spec;
    }
    keys::warn_unknown(cx, &found, SPEC_KEYS, keys::none);
    if let Some(timeout) = found.get("timeout") {
        spec.timeout = duration::timeout(cx, &timeout);
    }
    if let Some(on_error) = found.get("on_error") {
        match on_error.text() {
            Some("continue") => spec.on_error = OnError::Continue,
            Some("fail") => spec.on_error = OnError::Fail,
            _ => cx.not_one_of("E009", &on_error, &["continue", "fail"]),
        }
    }
    if let (Some(mode), Some(key)) = (found.get("next_mode"), found.key("next_mode")) {
        cx.older(
            key,
            "'next_mode' is the older place of the mode",
            "write 'next: {spec: {mode: …}}'",
        );
        spec.next_mode = next::mode(cx, &mode);
    }
    if let Some(found) = found.get("policy") {
        policy::refuse(cx, &found);
    }
    spec
}

fn join(cx: &mut Context<'_>, at: &Cursor<'_>) -> Join {
    let Some(join) = at.get("join") else {
        return Join::default();
    };
    match join.text() {
        Some("all") => return Join::All,
        Some("each") => return Join::Each,
        Some("any") => return Join::Any,
        _ => cx.not_one_of("E009", &join, JOINS),
    }
    Join::default()
}
