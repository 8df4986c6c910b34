//! `next` in all of its forms.
//!
//! The router (`{spec: {mode}, arcs: […]}`) is the current form. Deprecated forms are a name, a
//! list of names (all are followed), a list of arcs (the first match is followed), a single arc,
//! and when/then/else lists. They retain their meaning, and each is reported with its rewrite.

use noetl_template::Guard;

use super::context::Context;
use super::cursor::Cursor;
use super::{arc, branches, keys};
use crate::document::{NextArc, OnNoMatch, Router, RoutingMode};

const ROUTER_KEYS: &[&str] = &["spec", "arcs", "desc"];
const ROUTER_SPEC_KEYS: &[&str] = &["mode", "on_no_match"];
const MODES: &[&str] = &["exclusive", "inclusive"];

/// Decodes a step's arcs. `older_mode` is the mode from the step's `spec.next_mode`.
pub(super) fn decode(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    older_mode: Option<RoutingMode>,
) -> Router {
    if at.node.text().is_some() {
        let rewrite = "write 'next: {arcs: [{step: name}]}'";
        cx.older(at.position(), "'next' is a bare name", rewrite);
        let arcs = arc::bare(cx, at).into_iter().collect();
        return Router { arcs, ..Router::default() };
    }
    if at.is_list() {
        return list(cx, at, older_mode);
    }
    if !at.is_map() {
        let message = format!("'next' is {}", at.node.described());
        cx.error("E021", at, message, "write 'next: {arcs: [{step: name}]}'");
        return Router::default();
    }
    let has = |name: &str| at.key(name).is_some();
    if has("arcs") {
        return router(cx, at, older_mode);
    }
    if has("then") || has("else") {
        return branches::decode(cx, at, std::slice::from_ref(at));
    }
    if has("step") {
        let rewrite = "write 'next: {arcs: [{step: name}]}'";
        cx.older(at.position(), "'next' is a single arc without 'arcs'", rewrite);
        let arcs = [arc::decode(cx, at)];
        lint(cx, std::slice::from_ref(at), &arcs, RoutingMode::Exclusive);
        return Router { arcs: arcs.into_iter().flatten().collect(), ..Router::default() };
    }
    if at.entries().next().is_some() {
        let message = "'next' has neither 'arcs' nor 'step'";
        cx.error("E021", at, message, "write 'next: {arcs: [{step: name, when: \"…\"}]}'");
    }
    Router::default()
}

/// Decodes the mode of a router.
pub(super) fn mode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<RoutingMode> {
    match at.text() {
        Some("exclusive") => Some(RoutingMode::Exclusive),
        Some("inclusive") => Some(RoutingMode::Inclusive),
        _ => {
            cx.not_one_of("E022", at, MODES);
            None
        }
    }
}

fn router(cx: &mut Context<'_>, at: &Cursor<'_>, older_mode: Option<RoutingMode>) -> Router {
    keys::warn_unknown(cx, at, ROUTER_KEYS, |name| ROUTER_SPEC_KEYS.contains(&name));
    let spec = at.get("spec").filter(|spec| cx.is_map(spec, "write 'spec: {mode: exclusive}'"));
    if let Some(spec) = &spec {
        keys::warn_unknown(cx, spec, ROUTER_SPEC_KEYS, keys::none);
    }
    for name in ROUTER_SPEC_KEYS {
        if let Some(key) = at.key(name) {
            let message = format!("'{name}' stands beside 'arcs'");
            cx.older(
                key,
                message,
                format!("write it under 'spec': 'next: {{spec: {{{name}: …}}}}'"),
            );
        }
    }
    let written_mode = spec
        .as_ref()
        .and_then(|spec| spec.get("mode"))
        .or_else(|| at.get("mode"))
        .and_then(|written| mode(cx, &written));
    let mode = written_mode.or(older_mode).unwrap_or_default();
    let no_match =
        spec.as_ref().and_then(|spec| spec.get("on_no_match")).or_else(|| at.get("on_no_match"));
    let on_no_match = no_match.as_ref().map(|written| on_no_match(cx, written));
    let arcs = match at.get("arcs") {
        Some(arcs) if arcs.is_list() => {
            let items: Vec<_> = arcs.items().collect();
            let decoded: Vec<_> = items.iter().map(|item| arc::decode(cx, item)).collect();
            if on_no_match.is_none() {
                lint_last(cx, &items, &decoded, mode);
            }
            lint_dead(cx, &items, &decoded, mode);
            decoded.into_iter().flatten().collect()
        }
        Some(arcs) => {
            let message = format!("'arcs' is a list, found {}", arcs.node.described());
            cx.error("E021", &arcs, message, "begin each arc with a dash: '- step: name'");
            Vec::new()
        }
        None => Vec::new(),
    };
    Router { mode, on_no_match: on_no_match.unwrap_or_default(), arcs }
}

fn on_no_match(cx: &mut Context<'_>, at: &Cursor<'_>) -> OnNoMatch {
    match at.text() {
        Some("complete" | "quiet") => OnNoMatch::End,
        Some("fail") => OnNoMatch::Fail,
        _ => {
            cx.not_one_of("E009", at, &["complete", "quiet", "fail"]);
            OnNoMatch::End
        }
    }
}

fn list(cx: &mut Context<'_>, at: &Cursor<'_>, older_mode: Option<RoutingMode>) -> Router {
    let items: Vec<_> = at.items().collect();
    if items.is_empty() {
        return Router::default();
    }
    let branching = |item: &Cursor<'_>| item.key("then").is_some() || item.key("else").is_some();
    if items.iter().any(branching) {
        return branches::decode(cx, at, &items);
    }
    let names_only = items.iter().all(|item| item.node.text().is_some());
    let natural = if names_only { RoutingMode::Inclusive } else { RoutingMode::Exclusive };
    let mode = older_mode.unwrap_or(natural);
    let message = match mode {
        RoutingMode::Inclusive => "'next' is a list; every arc of it that matches is taken",
        RoutingMode::Exclusive => "'next' is a list; the first arc of it that matches is taken",
    };
    let word = MODES[usize::from(mode == RoutingMode::Inclusive)];
    cx.older(
        at.position(),
        message,
        format!("write 'next: {{spec: {{mode: {word}}}, arcs: […]}}'"),
    );
    let arcs: Vec<_> = items.iter().map(|item| arc::decode(cx, item)).collect();
    lint(cx, &items, &arcs, mode);
    Router { mode, arcs: arcs.into_iter().flatten().collect(), ..Router::default() }
}

/// Warns about arcs that can never be taken, and about routers that may match no arc.
pub(super) fn lint(
    cx: &mut Context<'_>,
    at: &[Cursor<'_>],
    arcs: &[Option<NextArc>],
    mode: RoutingMode,
) {
    lint_last(cx, at, arcs, mode);
    lint_dead(cx, at, arcs, mode);
}

fn lint_last(cx: &mut Context<'_>, at: &[Cursor<'_>], arcs: &[Option<NextArc>], mode: RoutingMode) {
    let ordinary = |arc: &&Option<NextArc>| arc.as_ref().is_none_or(|arc| !arc.on_failure);
    let Some(last) = arcs.iter().rposition(|arc| ordinary(&arc)) else {
        return;
    };
    let Some(arc) = &arcs[last] else { return };
    if mode == RoutingMode::Exclusive && !matches!(arc.when, Guard::Constant(true)) {
        let message = "the last arc has a condition, so it can happen that none is taken";
        let help = "add an arc without 'when' at the end, or say 'spec: {on_no_match: complete}' \
                    (or fail)";
        cx.warning("W105", &at[last], message, help);
    }
}

fn lint_dead(cx: &mut Context<'_>, at: &[Cursor<'_>], arcs: &[Option<NextArc>], mode: RoutingMode) {
    if mode == RoutingMode::Inclusive {
        return;
    }
    let always = |arc: &NextArc| matches!(arc.when, Guard::Constant(true));
    // An arc that refers to failure is considered after a failure; ordinary arcs are not.
    let kind = |arc: &NextArc| (arc.on_success, arc.on_failure);
    for (index, arc) in arcs.iter().enumerate() {
        let Some(arc) = arc.as_ref().filter(|arc| always(arc)) else {
            continue;
        };
        let later = arcs[index + 1..].iter().flatten();
        if later.clone().any(|later| kind(later) == kind(arc)) {
            let message = "this arc is always taken, so those after it never are";
            let help = "move it to the end, give it a 'when', or use 'spec: {mode: inclusive}'";
            return cx.warning("W106", &at[index], message, help);
        }
    }
}
