//! `metadata`: name and catalog path of the playbook.

use super::context::Context;
use super::cursor::Cursor;

/// Name and catalog path of a playbook.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) path: String,
}

/// Decodes `metadata`. Other keys are reserved for the author.
pub(super) fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Metadata {
    let help = "add 'metadata: {name: my-playbook}'";
    let Some(at) = root.get("metadata") else {
        cx.error("E003", root, "the playbook has no 'metadata'", help);
        return Metadata::default();
    };
    if !cx.is_map(&at, help) {
        return Metadata::default();
    }
    let name = match at.get("name") {
        Some(name) => text(cx, &name),
        None => {
            cx.error("E003", &at, "the playbook has no name", "add 'name: my-playbook'");
            None
        }
    };
    let path = at.get("path").and_then(|path| text(cx, &path));
    let name = name.unwrap_or_default();
    Metadata { path: path.unwrap_or_else(|| name.clone()), name }
}

fn text(cx: &mut Context<'_>, at: &Cursor<'_>) -> Option<String> {
    match at.text() {
        Some("") => {
            cx.error("E003", at, "the name or path is empty", "write at least one character");
            None
        }
        Some(text) => Some(text.to_owned()),
        None => {
            let message = format!("a name or path is text, found {}", at.node.described());
            cx.error("E003", at, message, "put it in quotes");
            None
        }
    }
}
