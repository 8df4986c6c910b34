//! Assignments: `set` and its older names.

use super::context::Context;
use super::cursor::Cursor;
use super::{suggest, value};
use crate::document::{Assignment, SetScope};

const SCOPES: &[&str] = &["ctx", "step", "iter"];

/// Every assignment of a step, an arc or a tool, older names first so that `set` has the last word.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>, older: &[&str]) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    for name in older.iter().copied().chain(["set_ctx"]) {
        let (Some(block), Some(key)) = (at.get(name), at.key(name)) else {
            continue;
        };
        let message = format!("'{name}' is the older name of 'set' into ctx");
        cx.older(key, message, "write 'set: {ctx.name: value}'");
        if cx.is_map(&block, "write 'set: {ctx.name: value}'") {
            for (key, entry) in block.entries() {
                let name = key.name.strip_prefix("ctx.").unwrap_or(&key.name);
                assign(cx, &entry, SetScope::Ctx, name, &mut assignments);
            }
        }
    }
    if let Some(key) = at.key("set_iter") {
        refuse_iter(cx, key);
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

/// One entry of `set`: `ctx.a.b: value`, or `ctx: {a: value}`.
fn target(cx: &mut Context<'_>, name: &str, entry: &Cursor<'_>, into: &mut Vec<Assignment>) {
    let (scope, rest) = name.split_once('.').unwrap_or((name, ""));
    let known = match scope {
        "ctx" => Some(SetScope::Ctx),
        "step" => Some(SetScope::Step),
        "iter" => return refuse_iter(cx, entry.place()),
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
                let help = format!("{meant}a target is ctx.name or step.name");
                return cx.error("E017", entry, format!("unknown scope '{scope}'"), help);
            }
            let message = format!("the target '{name}' names no scope and is taken as ctx.{name}");
            cx.older(entry.place(), message, format!("write 'ctx.{name}'"));
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
    let value = value::decode(cx, entry);
    into.push(Assignment { scope, path, value });
}

fn refuse_iter(cx: &mut Context<'_>, place: (crate::yaml::Place, super::cursor::Path<'_>)) {
    let help = "write 'ctx.name'; iter belongs to loops";
    cx.unsupported(place, "assigning to iter is", help);
}
