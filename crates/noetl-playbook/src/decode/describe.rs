//! Catalog metadata of a document of any kind.

use serde_json::Value;

use super::context::Context;
use super::cursor::Cursor;
use super::{open, value};
use crate::diagnostic::Diagnostic;

/// Catalog metadata of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Root key `kind` as written. Empty if missing.
    pub kind: String,
    /// Value of `metadata.name`, if present and not empty.
    pub name: Option<String>,
    /// Value of `metadata.path`, if present and not empty.
    pub path: Option<String>,
    /// Root key `workflow` as data.
    pub workflow: Option<Value>,
    /// Root key `workload` as data.
    pub workload: Option<Value>,
    /// Key `metadata.labels` as data.
    pub labels: Option<Value>,
}

/// Describes a document of any kind that has a `metadata` section.
///
/// Reads only the parts that the catalog needs, so a playbook that [`super::check`] rejects can be
/// described if it is valid YAML.
pub fn describe(text: &str) -> Result<Description, Vec<Diagnostic>> {
    let (mut cx, root) = open(text);
    let description = root.and_then(|root| read(&mut cx, &Cursor::root(&root)));
    match description {
        Some(description) if !cx.findings.has_errors() => Ok(description),
        _ => Err(cx.findings.into_sorted()),
    }
}

fn read(cx: &mut Context<'_>, root: &Cursor<'_>) -> Option<Description> {
    let help = "add 'metadata: {name: …, path: …}'";
    if !cx.is_map(root, "a document begins with 'apiVersion', 'kind' and 'metadata'") {
        return None;
    }
    let Some(metadata) = root.get("metadata") else {
        cx.error("E003", root, "the document has no 'metadata'", help);
        return None;
    };
    if !cx.is_map(&metadata, help) {
        return None;
    }
    let text = |at: &Cursor<'_>, name: &str| {
        let value = at.get(name).and_then(|value| value.text().map(str::to_owned));
        value.filter(|value| !value.is_empty())
    };
    let mut data =
        |at: &Cursor<'_>, name: &str| at.get(name).map(|value| value::literal(cx, &value));
    Some(Description {
        kind: text(root, "kind").unwrap_or_default(),
        name: text(&metadata, "name"),
        path: text(&metadata, "path"),
        workflow: data(root, "workflow"),
        workload: data(root, "workload"),
        labels: data(&metadata, "labels"),
    })
}
