//! Diagnostics: errors and warnings about a document, with position and remedy.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePos {
    /// Line number, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

impl SourcePos {
    /// Position of the first character.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    /// The document is usable, but the author should review it.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable code, `E…` or `W…`, explained in `docs/errors/`.
    pub code: &'static str,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Path in the document, such as `workflow[3].tool[1].kind`. Empty for the document as a whole.
    pub path: String,
    pub message: String,
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// Formats as `error[E011] at 12:11, workflow[3].tool.kind: unknown tool kind 'pyhton'`,
    /// without the help.
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
