//! `output`, `output_select`, `select`: projections of a result.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::Context;
use super::cursor::{Cursor, Path};
use crate::diagnostic::SourcePos;
use crate::tool::Selection;

/// Keys that hold a projection directly.
pub(super) const NAMES: &[&str] = &["output_select", "select"];

/// Help for `output` keys about storage of the result, which the document does not control.
const STORAGE_HELP: &str = "remove it; a large result is kept beside the log by itself";

/// Keys of published playbooks for the storage of a result.
const STRATEGY: &str = "strategy";
const THRESHOLD: &str = "threshold_kb";

/// Decodes the selections under a key of [`NAMES`] or under `output`.
pub(super) fn decode(cx: &mut Context<'_>, name: &str, at: &Cursor<'_>) -> Vec<Selection> {
    if NAMES.contains(&name) {
        return selections(cx, at);
    }
    if !cx.is_map(at, "write 'output: {select: {total: meta.total}}'") {
        return Vec::new();
    }
    let mut selected = Vec::new();
    for (key, value) in at.entries() {
        if NAMES.contains(&&*key.name) {
            if !value.node.is_null() {
                selected.extend(selections(cx, &value));
            }
        } else {
            let message = format!("'{}' of an output has no effect", key.name);
            cx.warning_at("W114", (key.at, value.path), message, STORAGE_HELP);
        }
    }
    selected
}

/// Decodes a list of paths, each named by its last part, or a mapping from names to paths.
fn selections(cx: &mut Context<'_>, at: &Cursor<'_>) -> Vec<Selection> {
    let mut selected: Vec<Selection> = Vec::new();
    let mut names = HashSet::new();
    if !at.is_map() && !at.is_list() {
        cx.expected(
            at,
            "a list of paths or a mapping",
            "write '[meta.total]' or '{total: meta.total}'",
        );
        return selected;
    }
    // Published playbooks write a threshold, never a path, under this key.
    let is_storage = at.entries().any(|(key, _)| *key.name == *THRESHOLD);
    for (key, entry) in at.entries() {
        if is_storage && [STRATEGY, THRESHOLD].contains(&&*key.name) {
            let message = format!("'{}' of an output has no effect", key.name);
            cx.warning_at("W114", (key.at, entry.path), message, STORAGE_HELP);
            continue;
        }
        if let Some(path) = path(cx, &entry) {
            selected.push(Selection { name: Arc::from(&*key.name), path });
        }
    }
    for item in at.items() {
        let Some(path) = path(cx, &item) else { continue };
        let Some(name) = path.last().cloned() else { continue };
        if !names.insert(Arc::clone(&name)) {
            let message = format!("two of the selected fields are called '{name}'");
            cx.error("E016", &item, message, "name each: 'select: {first: a.id, second: b.id}'");
            continue;
        }
        selected.push(Selection { name, path });
    }
    selected
}

fn path(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Vec<Arc<str>>> {
    let parts = at.text().and_then(parse).filter(|parts| !parts.is_empty());
    if parts.is_none() {
        let message = "this is not a path to a field";
        cx.error("E009", at, message, "write names joined by dots: meta.total, rows[0].id, $.a.b");
    }
    parts
}

/// Parses `a.b`, `$.a[0].b`, or `a['b c']`. Returns `None` for any other form.
fn parse(text: &str) -> Option<Vec<Arc<str>>> {
    let mut parts = Vec::new();
    let mut rest = match text.strip_prefix('$') {
        Some(rest) => rest,
        None if text.starts_with(['.', '[']) => return None,
        None => {
            let (name, rest) = name(text)?;
            parts.push(Arc::from(name));
            rest
        }
    };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (selected, after) = name(after)?;
            parts.push(Arc::from(selected));
            rest = after;
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            let quoted = |quote| inside.strip_prefix(quote)?.strip_suffix(quote);
            let index = || inside.bytes().all(|byte| byte.is_ascii_digit()).then_some(inside);
            let selected = quoted('\'').or_else(|| quoted('"')).or_else(index);
            parts.push(Arc::from(selected.filter(|selected| !selected.is_empty())?));
            rest = after;
        }
    }
    Some(parts)
}

fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let odd = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '{' | '}' | '(' | ')' | ']');
    (!name.is_empty() && !name.contains(odd)).then_some((name, rest))
}

/// Warns about a projection on a step without a result.
pub(super) fn useless(cx: &mut Context<'_>, place: (SourcePos, Path<'_>)) {
    let message = "a step without a tool has no result to select from";
    cx.warning_at("W114", place, message, "remove it, or add the tool it is for");
}
