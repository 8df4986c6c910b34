//! What there is to say about a document.

use noetl_playbook::{Diagnostic, Severity};

/// What was found about a document that is not kept.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Its kind, lower-case; none when it cannot be read.
    pub kind: Option<String>,
    pub path: Option<String>,
    /// What there is to say about it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Checkup {
    /// Whether it could be registered as it is.
    pub fn is_valid(&self) -> bool {
        self.diagnostics.iter().all(|found| found.severity != Severity::Error)
    }
}
