//! `policy`: rules that are applied after each attempt. This version checks how they are written
//! and refuses to run them.

use super::context::Context;
use super::cursor::Cursor;
use crate::yaml::Kind;

const ACTIONS: &[&str] = &["continue", "retry", "jump", "break", "fail"];
const BACKOFFS: &[&str] = &["none", "fixed", "linear", "exponential"];

/// Refuses a policy, and names the mistakes in its rules.
pub(super) fn refuse(cx: &mut Context<'_>, at: &Cursor<'_>) {
    let help = "remove it; a failed step is handled by an arc with 'on: error'";
    cx.unsupported(at.place(), "a policy is", help);
    if let Some(rules) = at.get("rules") {
        for rule in rules.items() {
            check_rule(cx, &rule);
        }
    }
}

fn check_rule(cx: &mut Context<'_>, at: &Cursor<'_>) {
    let guarded = ["when", "expr", "else"].iter().any(|name| at.key(name).is_some());
    if !guarded {
        let help = "write '- {when: \"…\", then: {do: …}}' or '- else: {then: {do: …}}'";
        return cx.error("E040", at, "the rule has neither 'when' nor 'else'", help);
    }
    let fallback = at.get("else");
    let fallback_then = fallback.as_ref().and_then(|fallback| fallback.get("then"));
    let then = at.get("then");
    let Some(action) = then.or(fallback_then).or(fallback) else {
        return cx.error("E040", at, "the rule does nothing", "add 'then: {do: continue}'");
    };
    check_action(cx, &action);
}

fn check_action(cx: &mut Context<'_>, at: &Cursor<'_>) {
    let Some(action) = at.get("do") else {
        return cx.error("E040", at, "the rule has no 'do'", "add 'do: retry', or another action");
    };
    match action.text() {
        Some("jump") if at.get("to").is_none() => {
            cx.error("E040", at, "the jump has no target", "add 'to: label'");
        }
        Some(text) if ACTIONS.contains(&text) => {}
        _ => cx.not_one_of("E040", &action, ACTIONS),
    }
    if let Some(attempts) = at.get("attempts")
        && matches!(attempts.node.kind, Kind::Int(..1) | Kind::Float(_) | Kind::Bool(_))
    {
        let message = "'attempts' counts every execution, so it is at least 1";
        cx.error("E040", &attempts, message, "write a whole number from 1");
    }
    if let Some(backoff) = at.get("backoff")
        && !backoff.text().is_some_and(|text| BACKOFFS.contains(&text))
    {
        cx.not_one_of("E040", &backoff, BACKOFFS);
    }
}
