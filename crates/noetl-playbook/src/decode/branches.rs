//! `next` as a list of `{when, then}` and `{else}`.
//!
//! The first branch whose condition is true is followed, as in an exclusive router. A branch to
//! several steps at once has no equivalent in a router unless it is the only branch.

use noetl_template::Guard;

use super::context::Context;
use super::cursor::Cursor;
use super::guard::Condition;
use super::{arc, guard, next};
use crate::document::{NextArc, Router, RoutingMode};

/// Converts a when/then/else list to a router.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>, branches: &[Cursor<'_>]) -> Router {
    let rewrite = "write 'next: {arcs: [{step: a, when: \"…\"}, {step: b}]}'";
    cx.older(at.position(), "'next' is a when/then/else list", rewrite);
    let mut arcs = Vec::new();
    let mut several = false;
    for branch in branches {
        let before = arcs.len();
        decode_branch(cx, branch, &mut arcs);
        let count = arcs.len() - before;
        if count > 1 && branches.len() > 1 {
            let message = "a branch among others leads to several steps";
            let help =
                "write 'next: {spec: {mode: inclusive}, arcs: […]}' with a 'when' on every arc";
            cx.error("E021", branch, message, help);
        }
        several |= count > 1;
    }
    let mode = if several { RoutingMode::Inclusive } else { RoutingMode::Exclusive };
    if arcs.len() == branches.len() {
        next::lint(cx, branches, &arcs, mode);
    }
    Router { mode, arcs: arcs.into_iter().flatten().collect(), ..Router::default() }
}

fn decode_branch(cx: &mut Context<'_>, at: &Cursor<'_>, arcs: &mut Vec<Option<NextArc>>) {
    if at.key("then").is_none() && at.key("else").is_none() {
        return arcs.push(arc::decode(cx, at));
    }
    let condition = match at.get("when") {
        Some(when) => guard::decode(cx, &when),
        None => Some(Condition { guard: Guard::Constant(true), speaks_of_failure: false }),
    };
    let Some(condition) = condition else {
        return arcs.push(None);
    };
    let Some(targets) = at.get("then").or_else(|| at.get("else")) else {
        cx.error("E021", at, "the branch leads nowhere", "name the step: 'then: [{step: name}]'");
        return arcs.push(None);
    };
    follow(cx, &targets, &condition, arcs);
}

/// Decodes the value of `then` or `else`: a name, an arc, a list of either, or a nested `then`.
fn follow(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    outer: &Condition,
    arcs: &mut Vec<Option<NextArc>>,
) {
    if let Some(inner) = at.get("then") {
        return follow(cx, &inner, outer, arcs);
    }
    if at.is_list() {
        for item in at.items() {
            follow(cx, &item, outer, arcs);
        }
        return;
    }
    if ["when", "cond", "condition"].iter().any(|name| at.key(name).is_some()) {
        let message = "a branch has a condition inside its condition";
        cx.error("E021", at, message, "combine both in one 'when' with 'and'");
        return arcs.push(None);
    }
    let arrow = arc::decode(cx, at).map(|arrow| NextArc {
        when: outer.guard.clone(),
        on_failure: arrow.on_failure || (arrow.on_success && outer.speaks_of_failure),
        ..arrow
    });
    arcs.push(arrow);
}
