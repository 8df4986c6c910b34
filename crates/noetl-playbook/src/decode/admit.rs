//! `spec.policy.admit`: rules that decide whether a token may start a step.

use std::time::Duration;

use noetl_template::Guard;

use super::context::Context;
use super::cursor::Cursor;
use super::{duration, guard, keys};
use crate::document::AdmissionPolicy;
use crate::yaml::NodeKind;

const KEYS: &[&str] = &["mode", "rules", "deadline_s"];
const MODES: &[&str] = &["exclusive", "inclusive", "wait"];
const RULE_KEYS: &[&str] = &["when", "then", "else", "allow", "name", "desc"];

/// Default time that a denied token waits.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// Decodes `admit`. Returns `None` if it admits every token or is invalid.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<AdmissionPolicy> {
    let form = "write 'admit: {rules: [{when: \"…\", then: {allow: false}}]}'";
    if !cx.is_map(at, form) {
        return None;
    }
    keys::warn_unknown(cx, at, KEYS, keys::none);
    let deadline = at.get("deadline_s").and_then(|written| duration::timeout(cx, &written));
    let mut wait = None;
    if let Some(mode) = at.get("mode") {
        match mode.text() {
            // The first matching rule decides, so both modes mean the same.
            Some("exclusive" | "inclusive") => {}
            Some("wait") => wait = Some(deadline.unwrap_or(WAIT)),
            _ => cx.not_one_of("E041", &mode, MODES),
        }
    }
    if let (None, Some(key)) = (wait, at.key("deadline_s")) {
        let message = "'deadline_s' has no effect on a token that does not wait";
        cx.warning_at("W114", key, message, "write 'mode: wait', or remove it");
    }
    let rules = at.get("rules")?;
    if !rules.is_list() {
        let message = format!("'rules' is a list, found {}", rules.node.described());
        cx.error("E041", &rules, message, form);
        return None;
    }
    let decoded = rules.items().filter_map(|item| rule(cx, &item)).collect::<Vec<_>>();
    (!decoded.is_empty()).then_some(AdmissionPolicy { rules: decoded, wait })
}

fn rule(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<(Guard, bool)> {
    let form = "write '- {when: \"…\", then: {allow: true}}' or '- else: {then: {allow: false}}'";
    if !at.is_map() {
        let message = format!("a rule is a mapping, found {}", at.node.described());
        cx.error("E041", at, message, form);
        return None;
    }
    keys::warn_unknown(cx, at, RULE_KEYS, keys::none);
    let otherwise = at.get("else");
    let condition = match at.get("when") {
        Some(when) => guard::decode(cx, &when)?.guard,
        None if at.key("else").is_some() => Guard::Constant(true),
        None => {
            cx.error("E041", at, "the rule has neither 'when' nor 'else'", form);
            return None;
        }
    };
    let below = otherwise.as_ref().and_then(|otherwise| otherwise.get("then"));
    let answer = at.get("then").or(below).or(otherwise).unwrap_or(*at);
    let Some(allow) = answer.get("allow") else {
        cx.error("E041", at, "the rule does not say 'allow'", form);
        return None;
    };
    match allow.node.kind {
        NodeKind::Bool(answer) => Some((condition, answer)),
        _ => {
            let message = format!("'allow' is true or false, found {}", allow.node.described());
            cx.error("E041", &allow, message, "write true or false");
            None
        }
    }
}
