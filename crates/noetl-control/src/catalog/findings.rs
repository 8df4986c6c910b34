//! What is wrong with a document besides its contents.

use noetl_playbook::subscription::SHARED_LISTENER;
use noetl_playbook::{Diagnostic, Severity};

/// Kinds of documents the catalog keeps. Playbooks and subscriptions are checked; the others are kept
/// as they are.
pub(super) const KINDS: [&str; 6] =
    ["playbook", "subscription", "agent", "mcp", "credential", "memory"];

pub(super) fn no_path() -> Diagnostic {
    let message = "Missing 'path' or 'name' in metadata".to_owned();
    of_document("E003", "metadata", message, "write 'metadata: {name: my_playbook}'".to_owned())
}

/// The longest path: what a database can keep in order.
pub(super) const PATH_MAX: usize = 500;

/// What there is to say against a path.
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

/// A gateway knows a listener by its name alone, and asks for the first that has it.
pub(super) fn shared_listener(name: &str, others: &[String]) -> Diagnostic {
    let others: Vec<String> = others.iter().map(|other| format!("'{other}'")).collect();
    let message = format!("listener '{name}' is also that of {}", others.join(", "));
    let help =
        "let 'gateway_path' end in a name of its own; the first by path is served".to_owned();
    let found = of_document(SHARED_LISTENER, "spec.ingress.gateway_path", message, help);
    Diagnostic { severity: Severity::Warning, ..found }
}

/// A finding about a document that is known only by what it describes itself as.
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
