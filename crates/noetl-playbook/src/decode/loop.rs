//! `loop`: runs a step's work once per item.

use std::sync::Arc;

use noetl_template::{Template, ValueTemplate};

use super::context::Context;
use super::cursor::Cursor;
use super::{claim, keys, names, value};
use crate::document::{FailureMode, FrameSize, LoopExec, LoopMode, LoopSource, LoopSpec};
use crate::yaml::NodeKind;

const KEYS: &[&str] = &["in", "iterator", "cursor", "spec", "desc"];
const SPEC_KEYS: &[&str] = &["mode", "max_in_flight", "policy", "frame"];
const POLICY_KEYS: &[&str] = &["exec", "failure", "max_in_flight"];
const MODES: &[&str] = &["sequential", "parallel", "cursor"];
const EXECS: &[&str] = &["distributed", "local"];

/// Deprecated names and their replacements.
const OLDER: &[(&str, &str)] = &[
    ("items", "in"),
    ("collection", "in"),
    ("element", "iterator"),
    ("mode", "spec.mode"),
    ("concurrency", "spec.max_in_flight"),
    ("max_in_flight", "spec.max_in_flight"),
];

/// Deprecated keys that no longer have an effect.
const NEEDLESS: &[(&str, &str)] = &[
    ("collect", "remove it; the step's result has every item's data under 'results'"),
    ("enumerate", "remove it; the place of the item is 'iter.index'"),
];

const PAGINATION: &str = "lead an arc back to the step, or jump back within its pipeline, and keep \
                          the page in ctx";

/// Decodes a loop. Returns `None` after reporting an error. `failure` is the mode from the step's
/// policy.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    failure: Option<FailureMode>,
) -> Option<LoopSpec> {
    if !cx.is_map(at, "write 'loop: {in: \"{{ items }}\", iterator: item}'") {
        return None;
    }
    keys::refuse_removed(cx, at, &[("pagination", PAGINATION)]);
    let is_older = |name: &str| {
        OLDER.iter().chain(NEEDLESS).any(|(older, _)| *older == name) || name == "pagination"
    };
    keys::warn_unknown(cx, at, KEYS, is_older);
    for (name, help) in NEEDLESS {
        if let Some(key) = at.key(name) {
            cx.older(key, format!("'{name}' is not needed"), *help);
        }
    }
    let iterator = iterator(cx, at);
    let written = at.get("spec").filter(|spec| cx.is_map(spec, "write 'spec: {mode: parallel}'"));
    let mut spec = spec(cx, at, written.as_ref());
    let over = over(cx, at, &spec);
    if let (LoopExec::Local, Some(LoopSource::Cursor(_))) = (spec.exec, &over) {
        let message = "'exec: local' has no effect on a cursor, whose rows are claimed in between";
        cx.warning("W114", at, message, "remove it");
        spec.exec = LoopExec::Distributed;
    }
    let mode = spec.mode.unwrap_or_else(|| match &over {
        // Parallel if rows of a frame, or frames, can be in flight together.
        Some(LoopSource::Cursor(cursor)) => {
            let rows = FrameSize::RowConcurrency;
            let templated = cursor.frame.templates.iter().any(|(size, _)| *size == rows);
            match spec.max_in_flight.is_some()
                || templated
                || cursor.frame.sizes.row_concurrency > 1
            {
                true => LoopMode::Parallel,
                false => LoopMode::Sequential,
            }
        }
        _ => LoopMode::Sequential,
    });
    Some(LoopSpec {
        iterator: iterator?,
        over: over?,
        mode,
        max_in_flight: spec.max_in_flight,
        exec: spec.exec,
        failure: spec.failure.or(failure).unwrap_or_default(),
    })
}

/// Returns `current`, or the value under a deprecated name of `name`, which is reported.
fn value_or_alias<'b>(
    cx: &mut Context<'_>,
    at: &'b Cursor<'b>,
    name: &str,
    current: Option<Cursor<'b>>,
) -> Option<Cursor<'b>> {
    let mut chosen = current;
    for (older, _) in OLDER.iter().filter(|(_, meant)| *meant == name) {
        let (Some(value), Some(key)) = (at.get(older), at.key(older)) else { continue };
        if chosen.is_some() {
            let message = format!("'{older}' repeats '{name}'");
            cx.error_at("E016", key, message, format!("keep '{name}'"));
        } else {
            let message = format!("'{older}' is the older name of '{name}'");
            let rewrite = match name.split_once('.') {
                Some((outer, inner)) => format!("write '{outer}: {{{inner}: …}}'"),
                None => format!("write '{name}'"),
            };
            cx.older(key, message, rewrite);
            chosen = Some(value);
        }
    }
    chosen
}

fn iterator(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Arc<str>> {
    let help = "name the variable that holds the item: 'iterator: item'";
    let Some(written) = value_or_alias(cx, at, "iterator", at.get("iterator")) else {
        cx.error("E030", at, "the loop has no 'iterator'", help);
        return None;
    };
    let named = |text: &&str| {
        let mut characters = text.chars();
        let first = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        first && characters.all(|c| c.is_alphanumeric() || c == '_')
    };
    let Some(name) = written.text().filter(named) else {
        cx.error("E030", &written, "the iterator is not a name that templates can use", help);
        return None;
    };
    if !names::is_sayable(name) {
        let message = format!("in a template '{name}' is a word of its own, never this item");
        cx.warning("W118", &written, message, "name the item otherwise: 'iterator: item'");
    } else if names::is_always_seen(name) {
        let message = format!("the item '{name}' has the name of something templates always see");
        cx.warning("W109", &written, message, "name the item otherwise: 'iterator: item'");
    } else if cx.steps.contains_key(name) {
        let message = format!("the item '{name}' has the name of a step and hides its result");
        cx.warning("W109", &written, message, "name the item otherwise: 'iterator: item'");
    }
    cx.names.define(name);
    Some(Arc::from(name))
}

fn over(cx: &mut Context<'_>, at: &Cursor<'_>, spec: &LoopSpecNode<'_>) -> Option<LoopSource> {
    let items = value_or_alias(cx, at, "in", at.get("in"));
    match (items, at.get("cursor")) {
        (Some(_), Some(_)) => {
            cx.error("E030", at, "the loop has both 'in' and 'cursor'", "keep one of the two");
            None
        }
        (None, None) => {
            let help = match spec.is_cursor {
                true => "mode cursor goes through rows: 'cursor: {auth: …, claim: …}'",
                false => "say what to go through: 'in: \"{{ items }}\"'",
            };
            cx.error("E030", at, "the loop has neither 'in' nor 'cursor'", help);
            None
        }
        (Some(items), None) => {
            if spec.is_cursor {
                let message = "mode cursor goes through rows, and the loop has no 'cursor'";
                cx.error("E030", at, message, "write 'mode: sequential' or 'mode: parallel'");
            }
            if let Some(frame) = &spec.frame {
                let message = "'frame' has no effect on a loop without 'cursor'";
                cx.warning("W114", frame, message, "remove it");
            }
            self::items(cx, &items).map(LoopSource::Items)
        }
        (None, Some(cursor)) => {
            if spec.mode.is_some() {
                let message = "a loop over a cursor has mode cursor";
                cx.error("E030", at, message, "write 'mode: cursor', or leave the mode out");
            }
            let claim = claim::decode(cx, &cursor);
            let frame = claim::frame(cx, spec.frame.as_ref());
            Some(LoopSource::Cursor(Box::new(crate::document::Cursor { claim: claim?, frame })))
        }
    }
}

/// Decodes the collection of a loop, which is rendered on entry to its step.
fn items(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<ValueTemplate> {
    let help = "write 'in: \"{{ items }}\"', or a list";
    match &at.node.kind {
        NodeKind::Bool(_) => {
            cx.error("E030", at, "a loop cannot go through true or false", help);
            return None;
        }
        NodeKind::Text(text, _) if !Template::is_template(text) => {
            let trimmed = text.trim();
            if !(trimmed.starts_with('[') && trimmed.ends_with(']')) {
                let message = "the loop goes through one text, not through what it names";
                let help = format!("write 'in: \"{{{{ {trimmed} }}}}\"' if that is a name");
                cx.warning("W116", at, message, help);
            }
        }
        _ => {}
    }
    Some(value::decode(cx, at))
}

/// Settings of `spec`, and deprecated keys beside it.
#[derive(Debug, Default)]
struct LoopSpecNode<'a> {
    /// Loop mode. `None` if it is `cursor` or absent.
    mode: Option<LoopMode>,
    is_cursor: bool,
    max_in_flight: Option<ValueTemplate>,
    exec: LoopExec,
    failure: Option<FailureMode>,
    frame: Option<Cursor<'a>>,
}

fn spec<'a>(
    cx: &mut Context<'_>,
    at: &'a Cursor<'a>,
    written: Option<&'a Cursor<'a>>,
) -> LoopSpecNode<'a> {
    let mut spec = LoopSpecNode::default();
    if let Some(written) = written {
        keys::warn_unknown(cx, written, SPEC_KEYS, keys::none);
        spec.frame = written.get("frame");
    }
    let policy = written.and_then(|written| written.get("policy"));
    let policy = policy.filter(|policy| cx.is_map(policy, "write 'policy: {exec: local}'"));
    let mode = written.and_then(|written| written.get("mode"));
    if let Some(mode) = value_or_alias(cx, at, "spec.mode", mode) {
        match mode.text() {
            Some("sequential") => spec.mode = Some(LoopMode::Sequential),
            Some("parallel") => spec.mode = Some(LoopMode::Parallel),
            Some("cursor") => spec.is_cursor = true,
            _ => cx.not_one_of("E030", &mode, MODES),
        }
    }
    if let Some(policy) = &policy {
        keys::warn_unknown(cx, policy, POLICY_KEYS, keys::none);
        exec(cx, policy, &mut spec);
        spec.failure = failure(cx, policy);
    }
    let beside = written.and_then(|written| written.get("max_in_flight"));
    let beside = value_or_alias(cx, at, "spec.max_in_flight", beside);
    let within = policy.as_ref().and_then(|policy| policy.get("max_in_flight"));
    if let (Some(_), Some(within)) = (&beside, &within) {
        let message = "'max_in_flight' is written twice";
        cx.error("E016", within, message, "keep the one under 'spec'");
    }
    if let Some(most) = beside.or(within) {
        spec.max_in_flight = max_in_flight(cx, &most);
        if spec.mode != Some(LoopMode::Parallel) && !spec.is_cursor && at.get("cursor").is_none() {
            let message = "'max_in_flight' has no effect on a loop that runs item by item";
            cx.warning("W114", &most, message, "write 'mode: parallel', or remove it");
        }
    }
    spec
}

fn exec(cx: &mut Context<'_>, policy: &Cursor<'_>, spec: &mut LoopSpecNode<'_>) {
    let Some(written) = policy.get("exec") else { return };
    match written.text() {
        Some("distributed") => {}
        Some("local") => spec.exec = LoopExec::Local,
        _ => cx.not_one_of("E030", &written, EXECS),
    }
}

/// Decodes `failure.mode` of a step's or a loop's policy.
pub(super) fn failure(cx: &mut Context<'_>, policy: &Cursor<'_>) -> Option<FailureMode> {
    let failure = policy.get("failure")?;
    let mode = if failure.is_map() {
        keys::warn_unknown(cx, &failure, &["mode"], keys::none);
        failure.get("mode")?
    } else {
        failure
    };
    match mode.text() {
        Some("fail_fast") => Some(FailureMode::FailFast),
        Some("best_effort") => Some(FailureMode::BestEffort),
        _ => {
            cx.not_one_of("E009", &mode, &["fail_fast", "best_effort"]);
            None
        }
    }
}

fn max_in_flight(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<ValueTemplate> {
    let fits = match &at.node.kind {
        NodeKind::Int(number) => (1..=i64::from(u32::MAX)).contains(number),
        NodeKind::Text(text, _) => Template::is_template(text),
        _ => false,
    };
    if !fits {
        let help = "write a whole number from 1 or a template, or leave it out";
        cx.error("E030", at, "'max_in_flight' is at least 1", help);
        return None;
    }
    Some(value::decode(cx, at))
}

/// Warns about writes to `ctx` by items that run in parallel: the last item to end determines the
/// value.
pub(super) fn warn_race(cx: &mut Context<'_>, at: &Cursor<'_>) {
    let message = "items that run beside each other write ctx; the last to end has the last word";
    let help = "write 'iter.name', read 'results' of the step, or loop in mode sequential";
    cx.warning("W107", at, message, help);
}
