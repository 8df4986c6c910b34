//! Rewrites of `next` and its arcs.

use super::edits::Edit;
use super::tree::{FixNode, Shape};
use super::{Fixer, steps};

/// Rewrites the `next` of a step to the router form.
pub(super) fn rewrite(fixer: &mut Fixer<'_>, step: &FixNode) {
    let Some((key, next)) = step.entry("next") else { return };
    if next.shared {
        return;
    }
    match &next.shape {
        Shape::Scalar(..) => name(fixer, step, next),
        Shape::List(items, _) => list(fixer, step, key, next, items),
        Shape::Map(..) if next.has("arcs") => router(fixer, next),
        Shape::Map(..) if next.has("step") && !next.has("then") => single(fixer, step, key, next),
        Shape::Map(..) | Shape::Alias => {}
    }
}

/// Rewrites a bare name: `next: a`.
fn name(fixer: &mut Fixer<'_>, step: &FixNode, next: &FixNode) {
    let Some(written) = step_name(fixer, next) else { return };
    let Some(mut edits) = without_mode(fixer, step) else { return };
    edits.push(Edit::replace(next.start..next.end, format!("{{arcs: [{{step: {written}}}]}}")));
    fixer.push(next.start, "wrote 'next' with 'arcs'", edits);
}

/// Returns a name in a form valid within braces, or `None` if it would need quotes.
fn step_name(fixer: &Fixer<'_>, item: &FixNode) -> Option<String> {
    item.text()?;
    let written = fixer.written(item);
    (!written.contains(['\n', ',', '[', ']', '{', '}', '#'])).then(|| written.to_owned())
}

/// Returns the edits that remove `spec.next_mode`, whose mode moves to `next`, or `None` if they
/// are not certain.
fn without_mode(fixer: &Fixer<'_>, step: &FixNode) -> Option<Vec<Edit>> {
    match step.get("spec") {
        Some(spec) if spec.has("next_mode") => {
            spec.get("next_mode")?.text()?;
            if spec.entries().len() == 1 && !spec.is_flow() {
                return fixer.remove(step, "spec");
            }
            fixer.remove(spec, "next_mode")
        }
        _ => Some(Vec::new()),
    }
}

/// Rewrites a list: `next: [a, {step: b}]`.
fn list(fixer: &mut Fixer<'_>, step: &FixNode, key: &FixNode, next: &FixNode, items: &[FixNode]) {
    if items.is_empty() || items.iter().any(|item| item.shared) {
        return;
    }
    if items.iter().any(|item| item.has("then") || item.has("else")) {
        // The next pass turns the list into a router, once its branches are arcs.
        return items.iter().for_each(|item| branch(fixer, item));
    }
    items.iter().for_each(|item| arc(fixer, item));
    let names_only = items.iter().all(|item| item.text().is_some());
    let natural = if names_only { "inclusive" } else { "exclusive" };
    let spec = step.get("spec");
    let written = spec.and_then(|spec| spec.get("next_mode")).and_then(FixNode::text);
    let mode = written.unwrap_or(natural).to_owned();
    let Some(mut edits) = without_mode(fixer, step) else { return };
    if next.is_flow() {
        for item in items.iter().filter(|item| item.text().is_some()) {
            edits.push(Edit::insert(item.start, "{step: "));
            edits.push(Edit::insert(item.end, "}"));
        }
        edits.push(Edit::insert(next.start, format!("{{spec: {{mode: {mode}}}, arcs: ")));
        edits.push(Edit::insert(next.end, "}"));
    } else {
        for item in items.iter().filter(|item| item.text().is_some()) {
            edits.push(Edit::insert(item.start, "step: "));
        }
        let line = fixer.line_start(next.start);
        let (outer, dash) = (fixer.indent(key.start), fixer.indent(next.start));
        if !fixer.text[line..next.start].trim().is_empty() {
            return;
        }
        // A list may start in the column of its key, but the keys inserted around it may not.
        let by = if dash > outer { 0 } else { outer + 2 - dash };
        let (column, newline) = (" ".repeat(dash + by), fixer.newline);
        edits.push(Edit::insert(
            line,
            format!(
                "{column}spec: {{mode: {mode}}}{newline}{column}arcs:{newline}{}",
                " ".repeat(by)
            ),
        ));
        if by > 0 {
            edits.extend(fixer.shift(next.start, next.end, by));
        }
    }
    fixer.push(next.start, format!("wrote 'next' with 'arcs' in mode {mode}"), edits);
}

/// Rewrites `{when: …, then: [{step: a}]}` or `{else: [{step: a}]}` to an arc.
fn branch(fixer: &mut Fixer<'_>, at: &FixNode) {
    let branch_target = match (at.entry("then"), at.entry("else")) {
        (Some(then), None) => then,
        (None, Some(otherwise)) if !at.has("when") => otherwise,
        _ => return,
    };
    let (key, value) = branch_target;
    let target = match &value.shape {
        Shape::List(targets, _) => match targets.as_slice() {
            [target] => target,
            // Several targets cannot be expressed as a single arc.
            _ => return,
        },
        Shape::Scalar(..) | Shape::Map(..) => value,
        Shape::Alias => return,
    };
    if value.shared || target.shared || fixer.text[key.start..value.end].contains('#') {
        return;
    }
    let arc = match &target.shape {
        Shape::Scalar(..) => step_name(fixer, target).map(|name| format!("step: {name}")),
        Shape::Map(entries, _) if target.has("step") => {
            let between = match at.is_flow() {
                true => ", ".to_owned(),
                false => format!("{}{}", fixer.newline, " ".repeat(fixer.indent(key.start))),
            };
            let entry = |(key, value): &(FixNode, FixNode)| &fixer.text[key.start..value.end];
            let entries: Vec<&str> = entries.iter().map(entry).collect();
            // The lines of a multi-line entry have their own indentation.
            (!entries.iter().any(|entry| entry.contains('\n'))).then(|| entries.join(&between))
        }
        _ => None,
    };
    let Some(arc) = arc else { return };
    let edit = Edit::replace(key.start..value.end, arc);
    fixer.push(key.start, "wrote the branch as an arc", vec![edit]);
}

/// Rewrites a single arc: `next: {step: a, when: …}`.
fn single(fixer: &mut Fixer<'_>, step: &FixNode, key: &FixNode, next: &FixNode) {
    arc(fixer, next);
    let Some(mut edits) = without_mode(fixer, step) else { return };
    if next.is_flow() {
        edits.push(Edit::insert(next.start, "{arcs: ["));
        edits.push(Edit::insert(next.end, "]}"));
    } else {
        let line = fixer.line_start(next.start);
        let column = fixer.indent(next.start);
        if fixer.indent(key.start) >= column || !fixer.text[line..next.start].trim().is_empty() {
            return;
        }
        edits.push(Edit::insert(
            next.start,
            format!("arcs:{}{}- ", fixer.newline, " ".repeat(column)),
        ));
        edits.extend(fixer.shift(next.start, next.end, 2));
    }
    fixer.push(next.start, "wrote 'next' with 'arcs'", edits);
}

/// Rewrites the arcs of `next: {arcs: […]}`, and moves settings beside `arcs` under `spec`.
fn router(fixer: &mut Fixer<'_>, next: &FixNode) {
    for item in next.get("arcs").map(FixNode::items).unwrap_or_default() {
        arc(fixer, item);
    }
    let beside: Vec<&(FixNode, FixNode)> =
        ["mode", "on_no_match"].iter().filter_map(|name| next.entry(name)).collect();
    let [(key, value), rest @ ..] = beside.as_slice() else { return };
    if next.has("spec") || beside.iter().any(|(_, value)| value.text().is_none()) {
        return;
    }
    let inner: Vec<String> = beside
        .iter()
        .map(|(key, value)| format!("{}: {}", fixer.written(key), fixer.written(value)))
        .collect();
    let spec = format!("spec: {{{}}}", inner.join(", "));
    let mut edits = vec![Edit::replace(key.start..value.end, spec)];
    for (key, _) in rest {
        let Some(removal) = key.text().and_then(|name| fixer.remove(next, name)) else { return };
        edits.extend(removal);
    }
    fixer.push(key.start, "put the router's settings under 'spec'", edits);
}

fn arc(fixer: &mut Fixer<'_>, at: &FixNode) {
    if ["when", "cond", "condition"].iter().filter(|name| at.has(name)).count() == 1 {
        fixer.rename(at, "cond", "when");
        fixer.rename(at, "condition", "when");
    }
    for name in ["when", "cond", "condition"] {
        steps::condition(fixer, at, name);
    }
    steps::assignments(fixer, at, &["args", "input", "with", "set_ctx", "set_iter"]);
}
