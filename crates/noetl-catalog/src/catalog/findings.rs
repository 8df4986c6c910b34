//! Diagnostics about a document's metadata.

use noetl_playbook::subscription::SHARED_LISTENER;
use noetl_playbook::{Diagnostic, Severity};

/// Document kinds the catalog accepts. Playbooks, subscriptions, and schedules are checked; others
/// are stored without checks.
pub(super) const KINDS: [&str; 7] =
    ["playbook", "subscription", "schedule", "agent", "mcp", "credential", "memory"];

pub(super) fn no_path() -> Diagnostic {
    let message = "Missing 'path' or 'name' in metadata".to_owned();
    of_document("E003", "metadata", message, "write 'metadata: {name: my_playbook}'".to_owned())
}

/// Longest path in characters that a database can index.
pub(super) const PATH_MAX: usize = 500;

/// Returns an error if the path is too long.
pub(super) fn long_path(path: &str) -> Option<Diagnostic> {
    let length = path.chars().count();
    (length > PATH_MAX).then(|| {
        let message = format!("the path has {length} characters, and at most {PATH_MAX} are kept");
        of_document("E007", "metadata", message, "write a shorter 'path' or 'name'".to_owned())
    })
}

pub(super) fn unknown_kind(kind: &str) -> Diagnostic {
    let help = format!("write one of: {}", KINDS.join(", "));
    of_document("E002", "kind", format!("the catalog keeps no documents of kind '{kind}'"), help)
}

/// Returns a warning that a listener name is not unique. A gateway identifies a listener by name
/// alone and gets the first one.
pub(super) fn shared_listener(name: &str, others: &[String]) -> Diagnostic {
    let others: Vec<String> = others.iter().map(|other| format!("'{other}'")).collect();
    let message = format!("listener '{name}' is also that of {}", others.join(", "));
    let help =
        "let 'gateway_path' end in a name of its own; the first by path is served".to_owned();
    let found = of_document(SHARED_LISTENER, "spec.ingress.gateway_path", message, help);
    Diagnostic { severity: Severity::Warning, ..found }
}

/// Creates an error for a document's metadata, positioned at the start of the document.
fn of_document(code: &'static str, path: &str, message: String, help: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code,
        line: 1,
        column: 1,
        path: path.to_owned(),
        message,
        help: Some(help),
    }
}
