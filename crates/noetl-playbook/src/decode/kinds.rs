//! Tool kinds: which can run, which the language knows, and what each needs.

use std::collections::HashSet;

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;
use crate::document::OwnKind;
use crate::yaml::Kind;

/// Tool kinds that this version runs. `workbook` names a task of the workbook; `playbook`, `wait`
/// and `approval` are done by the control plane itself.
pub const KNOWN_KINDS: &[&str] = &[
    "python", "http", "shell", "noop", "postgres", "sqlite", "duckdb", "artifact", "transfer",
    "nats", "secrets", "workbook", "playbook", "wait", "approval",
];

/// Tool kinds of the language that this version does not run, with what does the same.
const OTHER_KINDS: &[(&str, &str)] = &[
    ("agent", "call its service with 'http', or start it as a 'playbook'"),
    ("container", "start it with 'shell', or call what starts it with 'http'"),
    ("ducklake", "use 'duckdb' with the extension loaded in its statements"),
    ("gateway", "call it with 'http'"),
    ("gcs", "call the storage service with 'http', or its program with 'shell'"),
    ("iterator", "write 'loop' on the step"),
    ("mcp", "call its service with 'http'"),
    ("provider", "call its service with 'http'"),
    ("result_fetch", "read the result in a template, or use 'artifact' with 'action: get'"),
    ("rhai", "use 'python'"),
    ("script", "use 'python' with 'script', or 'shell'"),
    ("snowflake", "call its service with 'http', or its driver from 'python'"),
    ("snowflake_transfer", "use 'transfer' between databases it knows, or 'python'"),
    ("subscription", "register a document of kind Subscription, which starts executions"),
    ("task_sequence", "write the tasks as a list under 'tool'"),
    ("wasm", "use 'python' or 'shell'"),
];

/// The kind that is named here, if it can run.
pub(super) fn decode(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<&'static str> {
    let runnable = || suggest::list(KNOWN_KINDS);
    let Some(text) = at.text() else {
        let message = format!("a tool kind is a word, found {}", at.node.described());
        cx.error("E011", at, message, format!("write {}", runnable()));
        return None;
    };
    if let Some(kind) = KNOWN_KINDS.iter().find(|kind| **kind == text) {
        return Some(*kind);
    }
    if text == "playbooks" {
        cx.older(at.place(), "'playbooks' is an older name", "write 'kind: playbook'");
        return Some("playbook");
    }
    if let Some((_, instead)) = OTHER_KINDS.iter().find(|(kind, _)| *kind == text) {
        let message = format!("tool kind '{text}' is not available in this version");
        cx.error("E090", at, message, *instead);
        return None;
    }
    let among_all = || {
        let others = OTHER_KINDS.iter().map(|(kind, _)| *kind);
        let all: Vec<&str> = KNOWN_KINDS.iter().copied().chain(others).collect();
        suggest::among(text, &all)
    };
    let help = cx.findings.keeps_errors().then(among_all).flatten().unwrap_or_default();
    let help = format!("{help}this version runs {}", runnable());
    cx.error("E011", at, format!("unknown tool kind '{text}'"), help);
    None
}

/// Which work of the control plane a kind is.
pub(super) fn own(kind: &str) -> Option<OwnKind> {
    match kind {
        "playbook" => Some(OwnKind::Playbook),
        "wait" => Some(OwnKind::Wait),
        "approval" => Some(OwnKind::Approval),
        _ => None,
    }
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

/// A setting that a kind cannot do without: any of `names`.
struct Need {
    names: &'static [&'static str],
    /// What the setting is made of.
    shape: Shape,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Text that is not empty.
    Text,
    /// Such text, or a list.
    Texts,
    /// Text, or a mapping.
    TextOrMap,
    /// Text, a list, or a mapping that says where it comes from.
    Statement,
    Any,
}

const fn need(names: &'static [&'static str], shape: Shape, help: &'static str) -> Need {
    Need { names, shape, help }
}

/// What a kind needs; an action may need more.
fn needs(kind: &str) -> &'static [Need] {
    match kind {
        "python" => {
            const { &[need(&["code", "script"], Shape::TextOrMap, "add 'code: |' with the program")] }
        }
        "http" => const { &[need(&["url", "endpoint"], Shape::Text, "add 'url: https://…'")] },
        "shell" => {
            const { &[need(&["command", "cmds", "commands"], Shape::Texts, "add 'command: …'")] }
        }
        "postgres" | "sqlite" | "duckdb" => {
            const {
                &[need(
                    &["query", "command", "sql", "commands", "script"],
                    Shape::Statement,
                    "add 'query: |' with the statement",
                )]
            }
        }
        "playbook" => {
            const { &[need(&["path", "catalog_id"], Shape::Any, "add 'path: …' of the playbook")] }
        }
        "wait" => {
            const {
                &[need(
                    &["seconds", "duration", "until", "for", "delay"],
                    Shape::Any,
                    "add 'seconds: 30', 'duration: 5m' or 'until: \"2030-01-01T00:00:00Z\"'",
                )]
            }
        }
        "transfer" => {
            const {
                &[
                    need(&["source"], Shape::TextOrMap, "add 'source: {kind: postgres, query: …}'"),
                    need(&["target"], Shape::TextOrMap, "add 'target: {kind: sqlite, table: …}'"),
                ]
            }
        }
        "nats" => {
            const {
                &[
                    need(
                        &["action", "operation"],
                        Shape::Text,
                        "add 'action: publish', or another",
                    ),
                    need(
                        &["subject", "bucket", "stream"],
                        Shape::Text,
                        "add the 'subject' or the 'bucket' it is about",
                    ),
                ]
            }
        }
        "artifact" => {
            const { &[need(&["action"], Shape::Text, "add 'action: get' or 'action: put'")] }
        }
        _ => &[],
    }
}

/// Reports settings that a kind cannot do without. `setting` finds one by name; a wait takes them
/// as arguments too, whose names are `given`.
pub(super) fn require<'a>(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    kind: &str,
    given: &HashSet<&str>,
    setting: impl Fn(&str) -> Option<Cursor<'a>>,
) {
    for need in needs(kind) {
        let Need { names, shape, help } = need;
        let Some((name, found)) = names.iter().find_map(|name| Some((name, setting(name)?))) else {
            if kind == "wait" && names.iter().any(|name| given.contains(name)) {
                continue;
            }
            let message = format!("tool kind '{kind}' needs '{}'", names[0]);
            cx.error("E015", at, message, *help);
            continue;
        };
        let fits = match &found.node.kind {
            Kind::Text(text, _) if text.trim().is_empty() => {
                let message = format!("'{name}' of tool kind '{kind}' is empty");
                cx.error("E015", &found, message, *help);
                continue;
            }
            Kind::Text(..) => true,
            Kind::List(_) => matches!(shape, Shape::Texts | Shape::Statement | Shape::Any),
            // A program is text; where it comes from is a mapping.
            Kind::Map(_) => match shape {
                Shape::TextOrMap => *name != "code",
                Shape::Statement => *name == "script",
                Shape::Text | Shape::Texts | Shape::Any => false,
            },
            _ => *shape == Shape::Any,
        };
        if !fits {
            cx.expected(&found, "text", "put it in quotes, or write it as a block with '|'");
        }
    }
}
