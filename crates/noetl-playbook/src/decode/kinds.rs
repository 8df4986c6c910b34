//! Tool kinds: which can run, which the language knows, and what each needs.

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;
use crate::yaml::Kind;

/// Tool kinds that this version runs.
pub const KNOWN_KINDS: &[&str] = &["python", "http", "shell", "noop"];

/// Tool kinds of the language that this version does not run.
const PLANNED_KINDS: &[&str] = &[
    "agent",
    "artifact",
    "container",
    "duckdb",
    "ducklake",
    "gateway",
    "gcs",
    "iterator",
    "mcp",
    "nats",
    "playbook",
    "playbooks",
    "postgres",
    "provider",
    "result_fetch",
    "rhai",
    "script",
    "secrets",
    "snowflake",
    "snowflake_transfer",
    "subscription",
    "task_sequence",
    "transfer",
    "wasm",
    "workbook",
];

/// The kind that is named here, if it can run.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<&'static str> {
    let runnable = suggest::list(KNOWN_KINDS);
    let Some(text) = at.text() else {
        let message = format!("a tool kind is a word, found {}", at.node.described());
        cx.error("E011", at, message, format!("write {runnable}"));
        return None;
    };
    if let Some(kind) = KNOWN_KINDS.iter().find(|kind| **kind == text) {
        return Some(*kind);
    }
    if PLANNED_KINDS.contains(&text) {
        let message = format!("tool kind '{text}' is not available in this version");
        cx.error("E090", at, message, format!("this version runs {runnable}"));
        return None;
    }
    let among_all = || suggest::among(text, &[KNOWN_KINDS, PLANNED_KINDS].concat());
    let help = cx.findings.keeps_errors().then(among_all).flatten().unwrap_or_default();
    let help = format!("{help}this version runs {runnable}");
    cx.error("E011", at, format!("unknown tool kind '{text}'"), help);
    None
}

/// The rewrite of `tool: python`.
pub(super) fn rewrite(kind: &str) -> String {
    match kind {
        "python" => "write 'tool: {kind: python, code: …}'".to_owned(),
        "http" => "write 'tool: {kind: http, url: …}'".to_owned(),
        "shell" => "write 'tool: {kind: shell, command: …}'".to_owned(),
        _ => format!("write 'tool: {{kind: {kind}}}'"),
    }
}

/// Reports settings that a kind cannot do without. `setting` finds one by name.
pub(super) fn require<'a>(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    kind: &str,
    setting: impl Fn(&str) -> Option<Cursor<'a>>,
) {
    let (names, help): (&[&str], _) = match kind {
        "python" => (&["code"], "add 'code: |' with the program"),
        "http" => (&["url", "endpoint"], "add 'url: https://…'"),
        "shell" => (&["command", "cmds", "commands"], "add 'command: …'"),
        _ => return,
    };
    if let (true, Some(script)) = (kind == "python", setting("script")) {
        let help = "put the program into 'code'";
        return cx.unsupported(script.place(), "a script from outside the playbook is", help);
    }
    let Some(found) = names.iter().find_map(|name| setting(name)) else {
        let message = format!("tool kind '{kind}' needs '{}'", names[0]);
        return cx.error("E015", at, message, help);
    };
    let listed = kind == "shell" && found.is_list();
    match &found.node.kind {
        Kind::Text(text, _) if text.trim().is_empty() => {
            cx.error(
                "E015",
                &found,
                format!("'{}' of tool kind '{kind}' is empty", names[0]),
                help,
            );
        }
        Kind::Text(..) => {}
        _ if listed => {}
        _ => cx.expected(&found, "text", "put it in quotes, or write it as a block with '|'"),
    }
}
