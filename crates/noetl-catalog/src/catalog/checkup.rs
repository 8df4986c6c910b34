//! Result of checking a document.

use noetl_playbook::{Diagnostic, Severity};

/// Result of checking a document without storing it.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Document kind in lower case. `None` if the document cannot be parsed.
    pub kind: Option<String>,
    pub path: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Checkup {
    /// Returns `true` if the document has no errors and could be registered.
    pub fn is_valid(&self) -> bool {
        self.diagnostics.iter().all(|found| found.severity != Severity::Error)
    }
}
