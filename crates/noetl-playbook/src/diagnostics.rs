//! Collects errors and warnings while a document is decoded.

use crate::diagnostic::{Diagnostic, Severity, SourcePos};

/// Maximum number of diagnostics stored per severity. Users read only the first dozen, and a
/// generated document with a mistake in each step must not consume memory for all of them.
const KEPT_MAX: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    /// Records an error, which makes the document unusable. An empty `help` means none.
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: SourcePos,
        path: impl ToString,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.errors += 1;
        if self.errors <= KEPT_MAX {
            let (message, help) = (message.into(), help.into());
            self.keep(Severity::Error, code, at, path.to_string(), (message, help));
        }
    }

    /// Records a warning for the author. An empty `help` means none.
    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        at: SourcePos,
        path: impl ToString,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.warnings += 1;
        if self.warnings <= KEPT_MAX {
            let (message, help) = (message.into(), help.into());
            self.keep(Severity::Warning, code, at, path.to_string(), (message, help));
        }
    }

    /// Returns `true` if an error was recorded.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns `true` if another error would be stored, so that a search for a suggestion is
    /// worthwhile.
    pub(crate) fn keeps_errors(&self) -> bool {
        self.errors < KEPT_MAX
    }

    /// Returns `true` if another warning would be stored.
    pub(crate) fn keeps_warnings(&self) -> bool {
        self.warnings < KEPT_MAX
    }

    /// Returns the diagnostics sorted by position, with a final note if some were omitted.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by(|a, b| {
            (a.line, a.column, a.severity, a.code).cmp(&(b.line, b.column, b.severity, b.code))
        });
        // A workbook task with a mistake is decoded once for each reference to it.
        self.diagnostics.dedup();
        let last = self.diagnostics.last().map_or(SourcePos::START, |last| SourcePos {
            line: u32::try_from(last.line).unwrap_or(u32::MAX),
            column: u32::try_from(last.column).unwrap_or(u32::MAX),
        });
        let left_out = |count: usize, what: &str| {
            let more = count.saturating_sub(KEPT_MAX);
            (more > 0)
                .then(|| format!("{more} more {what} are not listed; the first {KEPT_MAX} are"))
        };
        let more = (left_out(self.errors, "errors"), left_out(self.warnings, "warnings"));
        if let Some(message) = more.0 {
            self.keep(Severity::Error, "E099", last, String::new(), (message, String::new()));
        }
        if let Some(message) = more.1 {
            self.keep(Severity::Warning, "W199", last, String::new(), (message, String::new()));
        }
        self.diagnostics
    }

    fn keep(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: SourcePos,
        path: String,
        (message, help): (String, String),
    ) {
        self.diagnostics.push(Diagnostic {
            severity,
            code,
            line: usize::try_from(at.line).unwrap_or(usize::MAX),
            column: usize::try_from(at.column).unwrap_or(usize::MAX),
            path,
            message,
            help: (!help.is_empty()).then_some(help),
        });
    }
}
