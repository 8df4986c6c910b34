//! An outgoing arc of a step.

use noetl_template::{Guard, Template};

use super::context::Context;
use super::cursor::Cursor;
use super::guard::{self, Condition};
use super::{keys, set};
use crate::document::NextArc;
use crate::graph::StepIx;

const KEYS: &[&str] = &["step", "when", "set", "on", "desc", "name", "spec"];
const OLDER_KEYS: &[&str] = &["cond", "condition", "args", "input", "with", "set_ctx", "set_iter"];

/// Decodes an arc: a mapping with `step`, or a bare name. Returns `None` after reporting an error.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<NextArc> {
    if at.node.text().is_some() {
        return bare(cx, at);
    }
    if !at.is_map() {
        let message = format!("an arc is a mapping, found {}", at.node.described());
        cx.error("E023", at, message, "write '- step: name'");
        return None;
    }
    keys::warn_unknown(cx, at, KEYS, |name| OLDER_KEYS.contains(&name));
    let to = match at.get("step") {
        Some(step) => target(cx, &step),
        None => {
            let help = "name the step it leads to: '- {step: name, when: \"…\"}'";
            cx.error("E023", at, "the arc has no 'step'", help);
            None
        }
    };
    if let Some(key) = at.key("spec") {
        cx.warning_at("W114", key, "'spec' of an arc has no effect", "remove it");
    }
    let condition = condition(cx, at);
    let set = set::decode(cx, at, &["args", "input", "with"]);
    set::warn_iter(cx, at, &set);
    let on = on(cx, at);
    let (to, Condition { guard, speaks_of_failure }, on) = (to?, condition?, on?);
    Some(NextArc {
        to,
        when: guard,
        set,
        on_failure: match on {
            On::Either => speaks_of_failure,
            On::Error => true,
            On::Success => false,
        },
        on_success: on != On::Error,
    })
}

/// Decodes an unconditional arc that is a bare name.
pub(super) fn bare(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<NextArc> {
    Some(NextArc {
        to: target(cx, at)?,
        when: Guard::Constant(true),
        set: Vec::new(),
        on_failure: false,
        on_success: true,
    })
}

/// Resolves the name of a target step.
pub(super) fn target(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<StepIx> {
    let Some(name) = at.text() else {
        cx.expected(at, "the name of a step", "write the name as text");
        return None;
    };
    if let Some(ix) = cx.steps.get(name) {
        return Some(*ix);
    }
    let help = if Template::is_template(name) {
        "targets are fixed; write one arc per step and choose with 'when'".to_owned()
    } else if let Some(similar) = cx.similar_step(name) {
        format!("did you mean '{similar}'?")
    } else {
        format!("add a step named '{name}', or lead the arc to one that exists")
    };
    cx.error("E020", at, format!("there is no step named '{name}'"), help);
    None
}

fn condition(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Condition> {
    let names = ["when", "cond", "condition"];
    let mut written = names.into_iter().filter(|name| at.key(name).is_some());
    let Some(name) = written.next() else {
        return Some(Condition { guard: Guard::Constant(true), speaks_of_failure: false });
    };
    if let Some(second) = written.next().and_then(|second| at.key(second)) {
        let message = "the arc has two conditions";
        cx.error_at("E016", second, message, "keep 'when' and combine the two with 'and'");
    }
    if let (true, Some(key)) = (name != "when", at.key(name)) {
        let message = format!(
            "'{name}' is taken as 'when': this arc is guarded here, while other engines ignore \
             '{name}' and always take it"
        );
        cx.older(key, message, format!("write 'when' instead of '{name}'"));
    }
    let mut entries = at.entries();
    let (_, value) = entries.find(|(key, _)| &*key.name == name)?;
    guard::decode(cx, &value)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Either,
    Error,
    Success,
}

fn on(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<On> {
    let Some(on) = at.get("on") else {
        return Some(On::Either);
    };
    match on.text() {
        Some("error") => Some(On::Error),
        Some("success") => Some(On::Success),
        _ => {
            cx.not_one_of("E009", &on, &["error", "success"]);
            None
        }
    }
}
