//! What is wrong with a document, where, and what would be right.

use std::fmt;

use serde::Serialize;

/// Whether a document can be used in spite of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    /// It can, but its author should look.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code, `E…` or `W…`, explained in `docs/errors/`.
    pub code: &'static str,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Where in the document: `workflow[3].tool[1].kind`. Empty for the whole.
    pub path: String,
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// `error[E011] at 12:11, workflow[3].tool.kind: unknown tool kind 'pyhton'`, without the help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}[{}] at {}:{}", self.code, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}
