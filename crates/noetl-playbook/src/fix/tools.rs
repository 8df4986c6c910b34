//! Tools, their labels and their rules.

use super::edits::Edit;
use super::tree::{Item, Shape};
use super::{Fixer, steps};

/// What a step or a workbook task runs.
pub(super) fn rewrite(fixer: &mut Fixer<'_>, tool: &Item) {
    if tool.items().is_empty() {
        single(fixer, tool, true);
    }
    for item in tool.items() {
        single(fixer, item, false);
    }
}

fn single(fixer: &mut Fixer<'_>, tool: &Item, alone: bool) {
    if tool.has("kind") {
        return flat(fixer, tool, alone);
    }
    if let [(label, inner)] = tool.entries()
        && inner.has("kind")
    {
        unnest(fixer, tool, label, inner);
        flat(fixer, inner, alone);
    }
}

/// `{label: {kind: …}}` to `{name: label, kind: …}`.
fn unnest(fixer: &mut Fixer<'_>, tool: &Item, label: &Item, inner: &Item) {
    if label.text().is_none() || inner.has("name") || inner.shared {
        return;
    }
    let name = fixer.written(label).to_owned();
    let what = format!("put the label '{name}' beside 'kind'");
    let mut edits = Vec::new();
    if inner.is_flow() && tool.is_flow() {
        edits.push(Edit::replace(label.start..inner.start + 1, format!("name: {name}, ")));
        edits.push(Edit::delete(inner.end - 1..inner.end));
    } else if inner.is_flow() {
        edits.push(Edit::replace(label.start..inner.start + 1, format!("{{name: {name}, ")));
    } else {
        // A comment behind the label stays where it is.
        let Some(colon) = fixer.text[label.end..].find(':') else { return };
        edits.push(Edit::replace(label.start..label.end + colon + 1, format!("name: {name}")));
        let Some(by) = fixer.indent(inner.start).checked_sub(fixer.indent(label.start)) else {
            return;
        };
        for line in fixer.lines_after(label.end, inner.end) {
            let blanks = fixer.text[line..].bytes().take_while(|byte| *byte == b' ').count();
            edits.push(Edit::delete(line..line + by.min(blanks)));
        }
    }
    fixer.push(label.start, what, edits);
}

fn flat(fixer: &mut Fixer<'_>, tool: &Item, alone: bool) {
    if ["input", "args", "with"].iter().filter(|name| tool.has(name)).count() == 1 {
        fixer.rename(tool, "args", "input");
        fixer.rename(tool, "with", "input");
    }
    fixer.rename(tool, "credential", "auth");
    let kind = tool.get("kind").and_then(Item::text);
    if kind == Some("workbook") && alone {
        fixer.rename(tool, "task", "name");
    }
    if let (Some("playbooks"), Some(written)) = (kind, tool.get("kind")) {
        let edit = Edit::replace(fixer.content(written), "playbook");
        fixer.push(written.start, "wrote 'kind: playbook'", vec![edit]);
    }
    steps::assignments(fixer, tool, &["set_ctx", "set_iter"]);
    let spec = tool.get("spec");
    if let Some(spec) = spec {
        steps::assignments(fixer, spec, &["set_ctx", "set_iter"]);
    }
    let policies = [spec.and_then(|spec| spec.get("policy")), tool.get("policy")];
    for policy in policies.into_iter().flatten() {
        let rules = policy.get("rules").unwrap_or(policy);
        rules.items().iter().for_each(|item| rule(fixer, item));
    }
    for item in tool.get("eval").map(Item::items).unwrap_or_default() {
        rule(fixer, item);
    }
}

/// One rule of a policy.
fn rule(fixer: &mut Fixer<'_>, at: &Item) {
    fixer.rename(at, "expr", "when");
    for name in ["when", "expr"] {
        steps::condition(fixer, at, name);
    }
    let otherwise = at.get("else");
    if let Some(action) = otherwise.filter(|otherwise| otherwise.has("do"))
        && !action.has("then")
        && !at.has("then")
        && let Shape::Map(_, true) = action.shape
    {
        let edits = vec![Edit::insert(action.start, "{then: "), Edit::insert(action.end, "}")];
        fixer.push(action.start, "put the action of 'else' under 'then'", edits);
    }
    misindented(fixer, at);
    let below = otherwise.and_then(|otherwise| otherwise.get("then"));
    for action in [Some(at), at.get("then"), otherwise, below].into_iter().flatten() {
        if action.has("do") {
            steps::assignments(fixer, action, &["set_ctx", "set_iter"]);
        }
    }
}

/// `- else:` with `then` in its own column, where it belongs below.
fn misindented(fixer: &mut Fixer<'_>, at: &Item) {
    let [(first, nothing), (then, action)] = at.entries() else { return };
    let shaped = first.text() == Some("else") && then.text() == Some("then") && !at.is_flow();
    if !shaped || nothing.start != nothing.end || fixer.line_start(then.start) <= first.start {
        return;
    }
    let mut edits = vec![Edit::insert(fixer.line_start(then.start), "  ")];
    edits.extend(fixer.shift(then.start, action.end, 2));
    fixer.push(then.start, "put 'then' below 'else'", edits);
}
