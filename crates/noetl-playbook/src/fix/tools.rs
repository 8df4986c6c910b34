//! Rewrites of tools and their labels.

use super::edits::Edit;
use super::tree::FixNode;
use super::{Fixer, policies, steps};

/// Rewrites the tools of a step or a workbook task.
pub(super) fn rewrite(fixer: &mut Fixer<'_>, tool: &FixNode) {
    if tool.items().is_empty() {
        single(fixer, tool, true);
    }
    for item in tool.items() {
        single(fixer, item, false);
    }
}

fn single(fixer: &mut Fixer<'_>, tool: &FixNode, alone: bool) {
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

/// Rewrites `{label: {kind: …}}` to `{name: label, kind: …}`.
fn unnest(fixer: &mut Fixer<'_>, tool: &FixNode, label: &FixNode, inner: &FixNode) {
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
        // A comment after the label stays in place.
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

fn flat(fixer: &mut Fixer<'_>, tool: &FixNode, alone: bool) {
    let kind = tool.get("kind").and_then(FixNode::text);
    let names: &[&str] = match kind {
        Some("python") => &["input", "args", "with", "data"],
        _ => &["input", "args", "with"],
    };
    if names.iter().filter(|name| tool.has(name)).count() == 1 {
        names.iter().for_each(|name| fixer.rename(tool, name, "input"));
    }
    fixer.rename(tool, "credential", "auth");
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
    policies::rewrite(fixer, tool);
}
