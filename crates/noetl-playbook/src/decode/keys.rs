//! Key checks: unknown keys, and constructs removed from the language.

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;

/// Warns about every key of a mapping that is neither known nor deprecated. In a strict playbook,
/// reports an error instead. Suggestions include only known keys.
pub(super) fn warn_unknown(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    known: &[&str],
    is_older: impl Fn(&str) -> bool,
) {
    for (key, value) in at.entries() {
        if known.contains(&&*key.name) || is_older(&key.name) {
            continue;
        }
        let keeps = match cx.strict {
            true => cx.findings.keeps_errors(),
            false => cx.findings.keeps_warnings(),
        };
        let close = || suggest::closest(&key.name, known.iter().copied());
        let help = match keeps.then(close).flatten() {
            Some(meant) => format!("did you mean '{meant}'?"),
            None if !keeps => String::new(),
            None => format!("remove it; known here: {}", known.join(", ")),
        };
        let place = (key.at, value.path);
        if cx.strict {
            let message = format!("unknown key '{}', which a strict playbook refuses", key.name);
            cx.error_at("E102", place, message, help);
        } else {
            let message = format!("unknown key '{}', which has no effect", key.name);
            cx.warning_at("W102", place, message, help);
        }
    }
}

/// Returns `false` for every name: the `is_older` predicate of mappings without deprecated names.
pub(super) fn none(_: &str) -> bool {
    false
}

/// Rejects constructs of earlier dialects, with their rewrite.
pub(super) fn refuse_removed(cx: &mut Context<'_>, at: &Cursor<'_>, removed: &[(&str, &str)]) {
    for (key, value) in at.entries() {
        if let Some((name, rewrite)) = removed.iter().find(|(name, _)| **name == *key.name) {
            let message = format!("'{name}' is not part of the language");
            cx.error_at("E060", (key.at, value.path), message, *rewrite);
        }
    }
}

/// Returns `true` if tools reject a key by name.
pub(super) fn is_removed_from_tools(name: &str) -> bool {
    REMOVED_FROM_TOOLS.iter().any(|(removed, _)| *removed == name)
}

/// Rewrite of the removed key `retry`.
const RETRY: &str = "write a rule on the tool: spec: {policy: {rules: [{when: \"{{ output.error }}\", \
                     then: {do: retry, attempts: 3}}]}}";

/// Step keys of earlier dialects, with their rewrite.
pub(super) const REMOVED_FROM_STEPS: &[(&str, &str)] = &[
    ("case", "write the branches as arcs: next: {arcs: [{step: a, when: \"…\"}, {step: b}]}"),
    ("type", "write 'tool: {kind: …}' instead of 'type'"),
    ("retry", RETRY),
    ("sink", "write the result with a step of its own that 'next' leads to"),
    ("save", "write the result with a step of its own that 'next' leads to"),
    ("call", "write 'tool: {kind: playbook, path: …}' or 'tool: {kind: workbook, name: …}'"),
    ("with", "name the arguments under 'input'"),
    ("pass", "remove it; a step without a tool only routes, 'tool: {kind: noop}' does nothing"),
    ("run", "write 'tool: {kind: …}' with what it runs"),
];

/// Tool keys of earlier dialects, with their rewrite.
pub(super) const REMOVED_FROM_TOOLS: &[(&str, &str)] = &[
    ("retry", RETRY),
    ("sink", "write the result with a step of its own that 'next' leads to"),
    ("save", "write the result with a step of its own that 'next' leads to"),
];
