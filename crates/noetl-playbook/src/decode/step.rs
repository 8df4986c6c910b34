//! A step of the workflow.

use std::sync::Arc;
use std::time::Duration;

use noetl_template::Guard;

use super::context::Context;
use super::cursor::Cursor;
use super::task::DefaultTimeout;
use super::tool::{self, Decoded, Defaults};
use super::{admit, duration, guard, keys, r#loop, next, select, set, value};
use crate::document::{
    AdmissionPolicy, FailureMode, JoinRule, LoopExec, LoopMode, LoopSpec, OnError, Router,
    RoutingMode, Step, StepWork, TimeLimit,
};
use crate::tool::Selection;

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
    "output_select",
    "select",
    "spec",
    "join",
];
const OLDER_KEYS: &[&str] = &["args", "vars", "when", "set_ctx", "set_iter"];
const SPEC_KEYS: &[&str] = &["timeout", "on_error", "next_mode", "policy"];
const POLICY_KEYS: &[&str] = &["admit", "lifecycle", "failure", "emit"];
const JOINS: &[&str] = &["all", "each", "any"];

/// Decodes a step with the given name. Reports mistakes and decodes the remaining parts. `timeout`
/// applies to tools without a timeout of their own.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: Arc<str>,
    timeout: Option<Duration>,
) -> Step {
    keys::refuse_removed(cx, at, keys::REMOVED_FROM_STEPS);
    keys::warn_unknown(cx, at, KEYS, |key| {
        let misnames = name.is_empty() && matches!(key, "name" | "id");
        misnames || OLDER_KEYS.contains(&key) || is_removed(key)
    });
    let spec = spec(cx, at);
    let has_removed = at.entries().any(|(key, _)| is_removed(&key.name));
    if at.get("tool").is_none() && at.get("next").is_none() && !has_removed {
        let help = "add 'tool: {kind: noop}' if it does nothing, or 'next' if it only routes";
        cx.error("E010", at, format!("step '{name}' has neither 'tool' nor 'next'"), help);
    }
    let when = when(cx, at);
    let written_loop = at.get("loop");
    let repeat = written_loop.as_ref().and_then(|at| r#loop::decode(cx, at, spec.failure));
    let time = DefaultTimeout { step: spec.timeout, worker: timeout };
    let decoded = work(cx, at, &name, time, repeat.as_ref());
    if let (Some(repeat), Some(written)) = (&repeat, &written_loop) {
        check_loop(cx, written, repeat, &decoded);
    }
    let mut assignments = decoded.set;
    let own = set::decode(cx, at, &["vars"]);
    set::warn_iter(cx, at, &own);
    assignments.extend(own);
    let router = match at.get("next") {
        Some(next) => next::decode(cx, &next, spec.next_mode),
        None => Router::default(),
    };
    Step {
        name,
        work: decoded.work,
        repeat,
        when,
        admit: spec.admit,
        timeout: spec.timeout,
        limits: spec.limits,
        failure: spec.failure.unwrap_or_default(),
        set: assignments,
        router,
        join: join(cx, at),
        on_error: spec.on_error,
    }
}

fn is_removed(name: &str) -> bool {
    keys::REMOVED_FROM_STEPS.iter().any(|(removed, _)| *removed == name)
}

/// Decodes a condition on the step itself.
fn when(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Guard> {
    let (when, key) = (at.get("when")?, at.key("when")?);
    let message = "a condition on the step itself is older; when it does not hold, the step is \
                   passed over";
    cx.older(key, message, "put the condition on the arcs that lead to this step");
    guard::decode(cx, &when).map(|condition| condition.guard)
}

fn work(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    name: &Arc<str>,
    time: DefaultTimeout,
    repeat: Option<&LoopSpec>,
) -> Decoded {
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
    let select = selections(cx, at);
    let nothing = || Decoded { work: StepWork::Route, set: Vec::new(), writes_ctx: false };
    let Some(tool) = at.get("tool") else {
        if let Some(input) = input {
            let help = "remove it, or add the tool it is for";
            cx.warning("W114", &input, "a step without a tool has no use for arguments", help);
        }
        if let Some(key) = at.key("loop").filter(|_| repeat.is_some()) {
            let message = "the loop has no tool to run for each item";
            cx.error_at("E030", key, message, "add 'tool: {kind: …}' to the step");
        }
        return nothing();
    };
    let defaults = Defaults {
        input,
        time,
        select,
        looped: repeat.is_some(),
        local: repeat.is_some_and(|repeat| repeat.exec == LoopExec::Local),
    };
    tool::decode(cx, &tool, name, &defaults).unwrap_or_else(nothing)
}

/// Decodes the projections of the step's result.
fn selections(cx: &mut Context<'_>, at: &Cursor<'_>) -> Vec<Selection> {
    let mut picked = Vec::new();
    for name in ["output"].iter().chain(select::NAMES) {
        let Some(selection) = at.get(name) else { continue };
        if at.get("tool").is_none() {
            select::useless(cx, selection.position());
        } else {
            picked.extend(select::decode(cx, name, &selection));
        }
    }
    picked
}

fn check_loop(cx: &mut Context<'_>, at: &Cursor<'_>, repeat: &LoopSpec, work: &Decoded) {
    if repeat.mode == LoopMode::Parallel && work.writes_ctx {
        r#loop::warn_race(cx, at);
    }
}

/// Settings of the step's `spec`.
#[derive(Debug, Default)]
struct StepSpec {
    timeout: Option<Duration>,
    limits: Vec<TimeLimit>,
    on_error: OnError,
    next_mode: Option<RoutingMode>,
    admit: Option<AdmissionPolicy>,
    failure: Option<FailureMode>,
}

fn spec(cx: &mut Context<'_>, at: &Cursor<'_>) -> StepSpec {
    let mut spec = StepSpec::default();
    let Some(spec_value) = at.get("spec") else {
        return spec;
    };
    if !cx.is_map(&spec_value, "write 'spec: {timeout: 30s}'") {
        return spec;
    }
    keys::warn_unknown(cx, &spec_value, SPEC_KEYS, keys::none);
    if let Some(timeout) = spec_value.get("timeout") {
        limit(cx, &timeout, "spec.timeout", &mut spec);
    }
    if let Some(on_error) = spec_value.get("on_error") {
        match on_error.text() {
            Some("continue") => spec.on_error = OnError::Continue,
            Some("fail") => spec.on_error = OnError::Fail,
            _ => cx.not_one_of("E009", &on_error, &["continue", "fail"]),
        }
    }
    if let (Some(mode), Some(key)) = (spec_value.get("next_mode"), spec_value.key("next_mode")) {
        cx.older(
            key,
            "'next_mode' is the older place of the mode",
            "write 'next: {spec: {mode: …}}'",
        );
        spec.next_mode = next::mode(cx, &mode);
    }
    if let Some(spec_value) = spec_value.get("policy") {
        policy(cx, &spec_value, &mut spec);
    }
    spec
}

/// Decodes `spec.policy` of a step.
fn policy(cx: &mut Context<'_>, at: &Cursor<'_>, spec: &mut StepSpec) {
    if !cx.is_map(at, "write 'policy: {admit: …, lifecycle: …, failure: …}'") {
        return;
    }
    keys::warn_unknown(cx, at, POLICY_KEYS, |name| name == "rules");
    if let Some(key) = at.key("rules") {
        let message = "the rules stand on the step, while a task is what they are about";
        cx.error_at("E040", key, message, "write them under the tool: 'tool: {spec: {policy: …}}'");
    }
    if let Some(key) = at.key("emit") {
        let message = "'emit' has no effect; every event is recorded";
        cx.warning_at("W114", key, message, "remove it");
    }
    if let Some(admit_value) = at.get("admit") {
        spec.admit = admit::decode(cx, &admit_value);
    }
    spec.failure = r#loop::failure(cx, at);
    let Some(lifecycle) = at.get("lifecycle") else { return };
    if !cx.is_map(&lifecycle, "write 'lifecycle: {timeout_s: 30}'") {
        return;
    }
    keys::warn_unknown(cx, &lifecycle, &["timeout_s", "deadline_s"], keys::none);
    for (name, key) in [
        ("timeout_s", "spec.policy.lifecycle.timeout_s"),
        ("deadline_s", "spec.policy.lifecycle.deadline_s"),
    ] {
        if let Some(written) = lifecycle.get(name) {
            limit(cx, &written, key, spec);
        }
    }
}

/// Decodes a time limit of a step run. The shortest limit applies.
fn limit(cx: &mut Context<'_>, at: &Cursor<'_>, key: &'static str, spec: &mut StepSpec) {
    if duration::is_template(at) {
        spec.limits.push(TimeLimit { key, value: value::decode(cx, at) });
    } else if let Some(limit) = duration::timeout(cx, at) {
        spec.timeout = Some(spec.timeout.map_or(limit, |timeout| timeout.min(limit)));
    }
}

fn join(cx: &mut Context<'_>, at: &Cursor<'_>) -> JoinRule {
    let Some(written) = at.get("join") else {
        return JoinRule::default();
    };
    let join = written.get("mode").unwrap_or(written);
    match join.text() {
        Some("all") => return JoinRule::All,
        Some("each") => return JoinRule::Each,
        Some("any") => return JoinRule::Any,
        _ => cx.not_one_of("E009", &join, JOINS),
    }
    JoinRule::default()
}
