//! `loop.cursor`: rows claimed from a database; `spec.frame`: how the rows are processed.

use std::sync::Arc;

use noetl_model::loops::FrameSizes;

use super::context::Context;
use super::cursor::Cursor;
use super::duration::is_template;
use super::{duration, keys, value};
use crate::document::{FrameSize, FrameSpec};
use crate::tool::Tool;
use crate::yaml::NodeKind;

/// Databases that support claiming rows.
const KINDS: &[&str] = &["postgres", "sqlite", "duckdb"];

/// Settings that locate a database without a stored credential.
const LOCATIONS: &[&str] =
    &["connection", "host", "url", "database", "db_path", "connection_string"];

const FRAME_KEYS: &[&str] = &["max_rows", "row_concurrency", "process", "max_attempts"];

/// Frame keys of the language that have no effect here. Workers hold leases: every command of a
/// frame has its own lease, which is renewed while the command runs. Another worker runs the
/// command if its worker is lost.
const FRAME_NEEDLESS: &[&str] =
    &["max_seconds", "max_bytes", "lease_seconds", "heartbeat_seconds", "retry_mode", "verify_ipc"];

/// Decodes the tool that claims rows.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<Tool> {
    let help = "write 'cursor: {kind: postgres, auth: …, claim: \"…\"}'";
    if !cx.is_map(at, help) {
        return None;
    }
    let kind = match at.get("kind") {
        None => Some("postgres"),
        Some(written) => {
            let known = written.text().and_then(|text| KINDS.iter().find(|known| **known == text));
            if known.is_none() {
                cx.not_one_of("E031", &written, KINDS);
            }
            known.copied()
        }
    };
    let statement = at.get("claim").and_then(|claim| claim.text().filter(|text| !text.is_empty()));
    if statement.is_none() {
        let help = "add 'claim' with the statement that marks rows and returns them";
        cx.error("E031", at, "the cursor has no 'claim'", help);
    }
    let options = at.get("options").filter(|options| cx.is_map(options, help));
    let located = LOCATIONS.iter().any(|name| {
        at.get(name).is_some()
            || options.as_ref().is_some_and(|options| options.get(name).is_some())
    });
    let authorised = at.get("auth").is_some() || at.get("credential").is_some();
    if kind == Some("postgres") && !authorised && !located {
        let help = "add 'auth' with the name of the database's credential";
        cx.error("E031", at, "the cursor has no 'auth'", help);
    }
    let config = config(cx, at, options.as_ref());
    statement?;
    Some(Tool {
        kind: Arc::from(kind?),
        config: value::map(config),
        input: value::empty(),
        timeout: at
            .get("timeout")
            .filter(|timeout| !is_template(timeout))
            .and_then(|timeout| duration::timeout(cx, &timeout)),
        select: Vec::new(),
        // The statement's own terms decide when claimed rows whose worker was lost can be claimed
        // again.
        idempotent: true,
    })
}

fn config(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    options: Option<&Cursor<'_>>,
) -> Vec<(String, noetl_template::ValueTemplate)> {
    let mut config = Vec::new();
    let own = at.names();
    for (key, entry) in at.entries() {
        let name = match &*key.name {
            "kind" | "options" => continue,
            // A templated timeout is passed on as an ordinary setting, because its value is not
            // known here.
            "timeout" if !is_template(&entry) => continue,
            "claim" => "query",
            "credential" => {
                let message = "'credential' is the older name of 'auth'";
                cx.older((key.at, entry.path), message, "write 'auth'");
                "auth"
            }
            name => name,
        };
        config.push((name.to_owned(), value::decode(cx, &entry)));
    }
    for (key, entry) in options.iter().flat_map(|options| options.entries()) {
        if !own.contains(&*key.name) {
            config.push((key.name.to_string(), value::decode(cx, &entry)));
        }
    }
    config
}

/// Decodes how claimed rows are processed.
pub(super) fn frame(cx: &mut Context<'_>, at: Option<&Cursor<'_>>) -> FrameSpec {
    let (sizes, templates) = (FrameSizes::default(), Vec::new());
    let mut frame = FrameSpec { sizes, templates, whole: false };
    let Some(at) = at.filter(|at| cx.is_map(at, "write 'frame: {max_rows: 10}'")) else {
        return frame;
    };
    keys::warn_unknown(cx, at, FRAME_KEYS, |name| FRAME_NEEDLESS.contains(&name));
    for name in FRAME_NEEDLESS {
        if let Some(key) = at.key(name) {
            let message = format!("'{name}' of a frame has no effect");
            let help = "remove it; a frame has as long as its rows take, and 'timeout' bounds them";
            cx.warning_at("W114", key, message, help);
        }
    }
    for size in FrameSize::ALL {
        let Some(value) = at.get(size.key()) else { continue };
        if is_template(&value) {
            frame.templates.push((size, value::decode(cx, &value)));
        } else if let Some(number) = whole(cx, &value, size.key()) {
            *size.size_mut(&mut frame.sizes) = number;
        }
    }
    if let Some(process) = at.get("process") {
        match process.text() {
            Some("row") => {}
            Some("frame") => frame.whole = true,
            _ => cx.not_one_of("E030", &process, &["row", "frame"]),
        }
    }
    frame
}

fn whole(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str) -> Option<u32> {
    let number = match at.node.kind {
        NodeKind::Int(number) => u32::try_from(number).ok().filter(|number| *number > 0),
        _ => None,
    };
    if number.is_none() {
        let help = format!("write '{name}: 10', or leave it out");
        cx.error("E030", at, format!("'{name}' is a whole number from 1"), help);
    }
    number
}
