//! `loop`: a step once per item. This version checks how it is written and refuses to run it.

use super::context::Context;
use super::cursor::Cursor;
use super::keys;
use crate::yaml::Kind;

const KEYS: &[&str] = &["in", "iterator", "cursor", "spec", "mode"];
const MODES: &[&str] = &["sequential", "parallel", "cursor"];

/// Refuses a loop, and names the mistakes in it.
pub(super) fn refuse(cx: &mut Context<'_>, at: &Cursor<'_>) {
    let help = "process the whole list in one step, or step by step with an arc back";
    cx.unsupported(at.place(), "a loop is", help);
    if !cx.is_map(at, "write 'loop: {in: \"{{ items }}\", iterator: item}'") {
        return;
    }
    keys::warn_unknown(cx, at, KEYS, keys::none);
    let named = at.get("iterator").and_then(|iterator| iterator.text());
    if at.get("cursor").is_none() && named.is_none_or(str::is_empty) {
        let help = "name the variable that holds the item: 'iterator: item'";
        cx.error("E030", at, "the loop has no 'iterator'", help);
    }
    match (at.get("in"), at.get("cursor")) {
        (Some(_), Some(_)) => {
            cx.error("E030", at, "the loop has both 'in' and 'cursor'", "keep one of the two");
        }
        (None, None) => {
            let help = "say what to go through: 'in: \"{{ items }}\"'";
            cx.error("E030", at, "the loop has neither 'in' nor 'cursor'", help);
        }
        (Some(_), None) => {}
        (None, Some(cursor)) => check_cursor(cx, &cursor),
    }
    if let Some(spec) = at.get("spec") {
        check_spec(cx, &spec);
    }
}

fn check_cursor(cx: &mut Context<'_>, at: &Cursor<'_>) {
    for name in ["claim", "auth"] {
        if at.get(name).is_none() {
            let help = "a cursor names the statement that claims rows and its credential";
            cx.error("E031", at, format!("the cursor has no '{name}'"), help);
        }
    }
}

fn check_spec(cx: &mut Context<'_>, at: &Cursor<'_>) {
    if let Some(mode) = at.get("mode")
        && !mode.text().is_some_and(|text| MODES.contains(&text))
    {
        cx.not_one_of("E030", &mode, MODES);
    }
    if let Some(most) = at.get("max_in_flight")
        && matches!(most.node.kind, Kind::Int(..1) | Kind::Float(_) | Kind::Bool(_))
    {
        let help = "write a whole number from 1, or leave it out";
        cx.error("E030", &most, "'max_in_flight' is at least 1", help);
    }
}
