//! Keys: unknown ones, and constructs that the language had once.

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;

/// Warns about every key of a mapping that is not among the known ones.
pub(super) fn warn_unknown(cx: &mut Context<'_>, at: &Cursor<'_>, known: &[&str]) {
    for (key, value) in at.entries() {
        if !known.contains(&&*key.name) {
            let help = suggest::among(&key.name, known).unwrap_or_default();
            let help = format!("{help}it has no effect here; known keys: {}", known.join(", "));
            let message = format!("unknown key '{}'", key.name);
            cx.warning_at("W102", (key.at, value.path), message, help);
        }
    }
}

/// Refuses constructs that the language no longer has, with their rewrite.
pub(super) fn refuse_removed(cx: &mut Context<'_>, at: &Cursor<'_>, removed: &[(&str, &str)]) {
    for (key, value) in at.entries() {
        if let Some((name, rewrite)) = removed.iter().find(|(name, _)| **name == *key.name) {
            let message = format!("'{name}' is no longer part of the language");
            cx.error_at("E060", (key.at, value.path), message, *rewrite);
        }
    }
}

/// Step keys of earlier dialects.
pub(super) const REMOVED_FROM_STEPS: &[(&str, &str)] = &[
    ("case", "write the branches as arcs: next: {arcs: [{step: a, when: \"…\"}, {step: b}]}"),
    ("type", "write 'tool: {kind: …}' instead of 'type'"),
    ("retry", "retries are rules of the tool: tool.spec.policy.rules with 'do: retry'"),
    ("sink", "write the result with a step of its own that 'next' leads to"),
    ("save", "write the result with a step of its own that 'next' leads to"),
    ("call", "call another playbook with 'tool: {kind: playbook, path: …}'"),
    ("with", "name the arguments under 'input'"),
    ("pass", "remove it; a step without a tool only routes, 'tool: {kind: noop}' does nothing"),
    ("run", "write 'tool: {kind: …}' with what it runs"),
];

/// Tool keys of earlier dialects.
pub(super) const REMOVED_FROM_TOOLS: &[(&str, &str)] = &[
    ("retry", "retries are rules of the tool: spec.policy.rules with 'do: retry'"),
    ("sink", "write the result with a step of its own that 'next' leads to"),
    ("save", "write the result with a step of its own that 'next' leads to"),
];
