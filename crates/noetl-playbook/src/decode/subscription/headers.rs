//! `headers`: settings that message headers may control.

use serde_json::Map;

use super::fields::{flag, needed_text, section, text, texts, word};
use crate::decode::context::Context;
use crate::decode::cursor::Cursor;
use crate::decode::{keys, suggest, value};
use crate::subscription::{Directive, Headers, Passthrough, Propagate};

const KEYS: &[&str] = &["normalize", "directives", "trace", "passthrough", "unsigned"];
const DIRECTIVE_KEYS: &[&str] = &["header", "controls", "allowed", "map"];
const TRACE_KEYS: &[&str] = &["propagate", "baggage_allowlist"];

/// Settings that a header can control.
const CONTROLS: &[&str] = &[
    "dispatch.playbook",
    "dispatch.execution_pool",
    "priority",
    "idempotency_key",
    "content_type",
    "schema_hint",
];

pub(super) fn decode(cx: &mut Context<'_>, spec: &Cursor<'_>) -> Headers {
    let mut headers = Headers {
        normalize: true,
        directives: Vec::new(),
        propagate: Propagate::W3c,
        baggage_allowlist: Vec::new(),
        passthrough: Passthrough::Data,
        unsigned: false,
        written: None,
    };
    let Some(at) = section(cx, spec, "headers", KEYS) else { return headers };
    headers.written = Some(value::literal(cx, &at));
    headers.normalize = flag(cx, &at, "normalize").unwrap_or(true);
    headers.passthrough = passthrough(cx, &at);
    headers.unsigned = flag(cx, &at, "unsigned").unwrap_or(false);
    if let Some(trace) = section(cx, &at, "trace", TRACE_KEYS) {
        let propagate = word(cx, &trace, "propagate", Propagate::WORDS);
        headers.propagate = propagate.and_then(Propagate::from_text).unwrap_or(Propagate::W3c);
        headers.baggage_allowlist = texts(cx, &trace, "baggage_allowlist");
    }
    if let Some(directives) = at.get("directives") {
        if !directives.is_list() {
            let help = "write '- {header: x-noetl-route, controls: dispatch.playbook}'";
            cx.expected(&directives, "a list", help);
        }
        headers.directives = directives.items().filter_map(|item| directive(cx, &item)).collect();
    }
    headers
}

/// Decodes `passthrough`. Warns about an unknown word, which documents in catalogs may contain.
fn passthrough(cx: &mut Context<'_>, at: &Cursor<'_>) -> Passthrough {
    let Some(written) = text(cx, at, "passthrough") else { return Passthrough::Data };
    let known = Passthrough::from_text(&written);
    if let (None, Some(value)) = (known, at.get("passthrough")) {
        let message = format!("'passthrough: {written}' has no effect");
        cx.warning("W114", &value, message, "write 'data' or 'none'");
    }
    known.unwrap_or(Passthrough::Data)
}

fn directive(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Directive> {
    let help = "write '{header: x-noetl-route, controls: dispatch.playbook, allowed: [a/b]}'";
    if !cx.is_map(at, help) {
        return None;
    }
    keys::warn_unknown(cx, at, DIRECTIVE_KEYS, keys::none);
    let header = needed_text(cx, at, "header", help);
    let controls = needed_text(cx, at, "controls", help);
    let allowed = texts(cx, at, "allowed");
    let mut map = Map::new();
    if let Some(value) = at.get("map").filter(|value| cx.is_map(value, "write '{value: pool}'")) {
        let entries = value.entries();
        map = entries.map(|(key, to)| (key.name.to_string(), value::literal(cx, &to))).collect();
    }
    let (header, controls) = (header?, controls?);
    if let Some(value) = at.get("controls") {
        match &*controls {
            "dispatch.playbook" | "dispatch.execution_pool" if allowed.is_empty() => {
                let message = format!("no value of this header counts for '{controls}'");
                cx.warning("W114", &value, message, "name the values that do in 'allowed'");
            }
            "priority" if map.is_empty() => {
                let message = "no value of this header counts for 'priority'";
                cx.warning("W114", &value, message, "say which pool a value means in 'map'");
            }
            known if CONTROLS.contains(&known) => {}
            unknown => {
                let close = suggest::among(unknown, CONTROLS).unwrap_or_default();
                let message = format!("no header decides on '{unknown}'");
                let help = format!("{close}write {}", suggest::list(CONTROLS));
                cx.warning("W114", &value, message, help);
            }
        }
    }
    Some(Directive { header, controls, allowed, map })
}
