//! Tool kinds: runnable ones, other kinds of the language, and required settings.

use std::collections::HashSet;

use super::context::Context;
use super::cursor::Cursor;
use super::suggest;
use crate::document::ControlToolKind;
use crate::yaml::NodeKind;

/// Tool kinds that this version runs. `workbook` refers to a task of the workbook; the control
/// plane itself runs `playbook`, `wait`, and `approval`.
pub const KNOWN_KINDS: &[&str] = &[
    "python", "http", "shell", "noop", "postgres", "sqlite", "duckdb", "artifact", "transfer",
    "nats", "secrets", "workbook", "playbook", "wait", "approval",
];

/// Tool kinds of the language that this version does not run, with alternatives.
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

/// Decodes a tool kind. Returns `None` after reporting a kind that cannot run.
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
        cx.older(at.position(), "'playbooks' is an older name", "write 'kind: playbook'");
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

/// Returns the control-plane tool of a kind, or `None` for kinds that workers run.
pub(super) fn own(kind: &str) -> Option<ControlToolKind> {
    match kind {
        "playbook" => Some(ControlToolKind::Playbook),
        "wait" => Some(ControlToolKind::Wait),
        "approval" => Some(ControlToolKind::Approval),
        _ => None,
    }
}

/// Returns the rewrite of a bare kind, such as `tool: python`.
pub(super) fn rewrite(kind: &str) -> String {
    match kind {
        "python" => "write 'tool: {kind: python, code: …}'".to_owned(),
        "http" => "write 'tool: {kind: http, url: …}'".to_owned(),
        "shell" => "write 'tool: {kind: shell, command: …}'".to_owned(),
        _ => format!("write 'tool: {{kind: {kind}}}'"),
    }
}

/// A required setting: any of `names`.
struct Need {
    names: &'static [&'static str],
    /// Permitted types of the setting's value.
    shape: Shape,
    help: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Text that is not empty.
    Text,
    /// Nonempty text, or a list.
    Texts,
    /// Nonempty text, or a mapping.
    TextOrMap,
    /// Nonempty text, a list, or a mapping that names the source.
    Statement,
    Any,
}

const fn need(names: &'static [&'static str], shape: Shape, help: &'static str) -> Need {
    Need { names, shape, help }
}

/// Returns the settings that a kind requires. Individual actions may require more.
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

/// Reports missing required settings of a kind. `setting` looks up a setting by name. A wait also
/// accepts arguments, named `argument_names`.
pub(super) fn require<'a>(
    cx: &mut Context<'_>,
    at: &Cursor<'_>,
    kind: &str,
    argument_names: &HashSet<&str>,
    setting: impl Fn(&str) -> Option<Cursor<'a>>,
) {
    for need in needs(kind) {
        let Need { names, shape, help } = need;
        let Some((name, value)) = names.iter().find_map(|name| Some((name, setting(name)?))) else {
            if kind == "wait" && names.iter().any(|name| argument_names.contains(name)) {
                continue;
            }
            let message = format!("tool kind '{kind}' needs '{}'", names[0]);
            cx.error("E015", at, message, *help);
            continue;
        };
        let fits = match &value.node.kind {
            NodeKind::Text(text, _) if text.trim().is_empty() => {
                let message = format!("'{name}' of tool kind '{kind}' is empty");
                cx.error("E015", &value, message, *help);
                continue;
            }
            NodeKind::Text(..) => true,
            NodeKind::List(_) => matches!(shape, Shape::Texts | Shape::Statement | Shape::Any),
            // `code` must be text; a mapping names the source of a program.
            NodeKind::Map(_) => match shape {
                Shape::TextOrMap => *name != "code",
                Shape::Statement => *name == "script",
                Shape::Text | Shape::Texts | Shape::Any => false,
            },
            _ => *shape == Shape::Any,
        };
        if !fits {
            cx.expected(&value, "text", "put it in quotes, or write it as a block with '|'");
        }
    }
}
