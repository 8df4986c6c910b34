//! Rewrites of steps and assignments.

use super::edits::Edit;
use super::tree::FixNode;
use super::{Fixer, arcs, loops, tools};

/// Scopes that an assignment can name.
const SCOPES: &[&str] = &["ctx", "iter", "step"];

pub(super) fn rewrite(fixer: &mut Fixer<'_>, step: &FixNode) {
    fixer.rename(step, "args", "input");
    condition(fixer, step, "when");
    assignments(fixer, step, &["vars", "set_ctx", "set_iter"]);
    if let Some(tool) = step.get("tool") {
        tools::rewrite(fixer, tool);
    }
    if let Some(repeat) = step.get("loop") {
        loops::rewrite(fixer, repeat);
    }
    arcs::rewrite(fixer, step);
}

/// Rewrites deprecated names of `set`, and targets without a scope.
pub(super) fn assignments(fixer: &mut Fixer<'_>, map: &FixNode, older: &[&str]) {
    if let Some(set) = map.get("set") {
        targets(fixer, set);
    }
    let blocks: Vec<_> = older
        .iter()
        .chain(&["set"])
        .filter_map(|name| Some((*name, map.entry(name)?)))
        .filter(|(_, (_, value))| !value.entries().is_empty())
        .collect();
    match blocks.as_slice() {
        [] | [("set", _)] => {}
        [(name, (key, value))] if !map.has("set") => rename(fixer, name, key, value),
        blocks => merge(fixer, map, blocks),
    }
}

/// Returns the scope that a deprecated name writes to.
fn scope(name: &str) -> &'static str {
    if name == "set_iter" { "iter" } else { "ctx" }
}

/// Returns the prefix that a target lacks, if any.
fn prefix(name: &str, target: &str) -> Option<String> {
    let begins = |scope: &str| target.strip_prefix(scope).is_some_and(|rest| rest.starts_with('.'));
    let fits = match name {
        "set" => SCOPES.iter().any(|scope| begins(scope) || target == *scope),
        _ => begins(scope(name)),
    };
    (!fits).then(|| format!("{}.", scope(name)))
}

/// Renames a single deprecated block to `set` at the same position.
fn rename(fixer: &mut Fixer<'_>, name: &str, key: &FixNode, value: &FixNode) {
    let mut edits = vec![Edit::replace(fixer.content(key), "set")];
    for (target, _) in value.entries() {
        let Some(text) = target.text() else { return };
        if let Some(prefix) = prefix(name, text) {
            edits.push(Edit::insert(fixer.content(target).start, prefix));
        }
    }
    let what = format!("renamed '{name}' to 'set', with targets in {}", scope(name));
    fixer.push(key.start, what, edits);
}

/// Merges several flow-style blocks into a single `set` at the position of the first.
fn merge(fixer: &mut Fixer<'_>, map: &FixNode, blocks: &[(&str, &(FixNode, FixNode))]) {
    let mut inner = Vec::new();
    for (name, (_, value)) in blocks {
        if !value.is_flow() || fixer.written(value).contains(['\n', '#']) {
            return;
        }
        for (target, assigned) in value.entries() {
            let Some(text) = target.text() else { return };
            let at = fixer.content(target).start - target.start;
            let mut entry = fixer.text[target.start..assigned.end].to_owned();
            entry.insert_str(at, &prefix(name, text).unwrap_or_default());
            inner.push(entry);
        }
    }
    let Some((_, (key, value))) = blocks.iter().min_by_key(|(_, (key, _))| key.start) else {
        return;
    };
    let set = format!("set: {{{}}}", inner.join(", "));
    let mut edits = vec![Edit::replace(key.start..value.end, set)];
    for (name, (other, _)) in blocks {
        if other.start != key.start {
            let Some(removal) = fixer.remove(map, name) else { return };
            edits.extend(removal);
        }
    }
    let names: Vec<&str> = blocks.iter().map(|(name, _)| *name).collect();
    fixer.push(key.start, format!("put {} into one 'set'", names.join(", ")), edits);
}

/// Adds the scope to targets of `set` that name none.
fn targets(fixer: &mut Fixer<'_>, set: &FixNode) {
    for (target, _) in set.entries() {
        let Some(text) = target.text() else { continue };
        if let Some(prefix) = prefix("set", text) {
            let at = fixer.content(target).start;
            fixer.push(target.start, format!("wrote 'ctx.{text}'"), vec![Edit::insert(at, prefix)]);
        }
    }
}

/// Replaces a condition that is a YAML 1.1 boolean.
pub(super) fn condition(fixer: &mut Fixer<'_>, map: &FixNode, name: &str) {
    let Some(when) = map.get(name) else { return };
    let answer = match when.text().map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        Some("yes" | "on") => "true",
        Some("no" | "off") => "false",
        _ => return,
    };
    let edit = Edit::replace(when.start..when.end, answer);
    fixer.push(when.start, format!("wrote {answer}"), vec![edit]);
}
