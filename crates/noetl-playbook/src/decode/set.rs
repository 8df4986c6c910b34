//! Assignments: `set` and its deprecated names.

use serde_json::{Value, json};

use super::context::Context;
use super::cursor::Cursor;
use super::{suggest, value};
use crate::assignment::{Assignment, SetScope};

const SCOPES: &[&str] = &["ctx", "step", "iter"];

/// Decodes all assignments of a step, arc, or tool. Deprecated names come first, so that `set`
/// overrides them.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>, older: &[&str]) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    for name in older.iter().copied().chain(["set_ctx", "set_iter"]) {
        let (Some(block), Some(key)) = (at.get(name), at.key(name)) else {
            continue;
        };
        let (scope, word) = match name {
            "set_iter" => (SetScope::Iter, "iter"),
            _ => (SetScope::Ctx, "ctx"),
        };
        let message = format!("'{name}' is the older name of 'set' into {word}");
        cx.older(key, message, format!("write 'set: {{{word}.name: value}}'"));
        if cx.is_map(&block, &format!("write 'set: {{{word}.name: value}}'")) {
            for (key, entry) in block.entries() {
                let prefixed = key.name.strip_prefix(word).and_then(|rest| rest.strip_prefix('.'));
                assign(cx, &entry, scope, prefixed.unwrap_or(&key.name), &mut assignments);
            }
        }
    }
    if let Some(block) = at.get("set")
        && cx.is_map(&block, "write 'set: {ctx.name: value}'")
    {
        for (key, entry) in block.entries() {
            target(cx, &key.name, &entry, &mut assignments);
        }
    }
    assignments
}

/// Decodes an entry of `set`: `ctx.a.b: value`, or `ctx: {a: value}`.
fn target(cx: &mut Context<'_>, name: &str, entry: &Cursor<'_>, into: &mut Vec<Assignment>) {
    let (scope, rest) = name.split_once('.').unwrap_or((name, ""));
    let known = match scope {
        "ctx" => Some(SetScope::Ctx),
        "step" => Some(SetScope::Step),
        "iter" => Some(SetScope::Iter),
        "workload" => {
            let help = "write 'ctx.name'; the workload is what the execution was started with";
            return cx.error("E017", entry, "the workload cannot be changed", help);
        }
        _ => None,
    };
    match known {
        Some(scope) if rest.is_empty() && !name.ends_with('.') => {
            if cx.is_map(entry, "write 'ctx.name: value' or 'ctx: {name: value}'") {
                for (key, value) in entry.entries() {
                    assign(cx, &value, scope, &key.name, into);
                }
            }
        }
        Some(scope) => assign(cx, entry, scope, rest, into),
        None => {
            if !rest.is_empty()
                && let Some(meant) = suggest::among(scope, SCOPES)
            {
                let help = format!("{meant}a target is ctx.name, iter.name or step.name");
                return cx.error("E017", entry, format!("unknown scope '{scope}'"), help);
            }
            let message = format!("the target '{name}' names no scope and is taken as ctx.{name}");
            cx.older(entry.position(), message, format!("write 'ctx.{name}'"));
            assign(cx, entry, SetScope::Ctx, name, into);
        }
    }
}

fn assign(
    cx: &mut Context<'_>,
    entry: &Cursor<'_>,
    scope: SetScope,
    name: &str,
    into: &mut Vec<Assignment>,
) {
    let path: Vec<String> = name.split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        let help = "a target is a scope and names joined by dots: ctx.name, ctx.a.b, step.name";
        return cx.error("E017", entry, "the target has an empty name", help);
    }
    cx.names.define(&path[0]);
    if scope != SetScope::Ctx {
        cx.crossings.note_set(scope, &path, entry);
    }
    let value = value::decode(cx, entry);
    into.push(Assignment { scope, path, value });
}

/// Converts assignments to the form of a pipeline's source.
pub(super) fn source(assignments: &[Assignment]) -> Value {
    let one = |assignment: &Assignment| {
        let Assignment { scope, path, value } = assignment;
        json!({"scope": scope, "path": path, "value": value::source(value)})
    };
    assignments.iter().map(one).collect()
}

/// Warns about assignments to `iter` that no iteration can read anymore.
pub(super) fn warn_iter(cx: &mut Context<'_>, at: &Cursor<'_>, assignments: &[Assignment]) {
    let Some(block) = at.get("set").or_else(|| at.get("set_iter")) else { return };
    if assignments.iter().any(|assignment| assignment.scope == SetScope::Iter) {
        let message = "'iter' ends with the iteration, so nothing reads what is assigned here";
        let help = "assign 'iter' beside a task or in its rules, or write 'ctx.name'";
        cx.warning("W114", &block, message, help);
    }
}
