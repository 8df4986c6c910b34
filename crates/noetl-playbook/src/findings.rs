//! Findings as they are collected.

use crate::diagnostic::{Diagnostic, Severity};
use crate::yaml::Place;

/// Findings of each severity that are kept. Whoever repairs a document reads the first dozen; a
/// generated document with one mistake per step must not cost memory for each.
const KEPT_MAX: usize = 500;

/// Findings of one document.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Findings {
    /// Records what makes the document unusable. An empty help is none.
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: Place,
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

    /// Records what the author should look at. An empty help is none.
    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        at: Place,
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

    /// Whether anything makes the document unusable.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether another error would be kept, and is worth a search for what its author meant.
    pub(crate) fn keeps_errors(&self) -> bool {
        self.errors < KEPT_MAX
    }

    /// Whether another warning would be kept.
    pub(crate) fn keeps_warnings(&self) -> bool {
        self.warnings < KEPT_MAX
    }

    /// Everything found, by position, with a closing note when some was left out.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.kept.sort_by(|a, b| {
            (a.line, a.column, a.severity, a.code).cmp(&(b.line, b.column, b.severity, b.code))
        });
        // A workbook task with a mistake is read wherever it is referred to.
        self.kept.dedup();
        let last = self.kept.last().map_or(Place::START, |last| Place {
            line: u32::try_from(last.line).unwrap_or(u32::MAX),
            column: u32::try_from(last.column).unwrap_or(u32::MAX),
        });
        let left_out = |found: usize, what: &str| {
            let more = found.saturating_sub(KEPT_MAX);
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
        self.kept
    }

    fn keep(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: Place,
        path: String,
        (message, help): (String, String),
    ) {
        self.kept.push(Diagnostic {
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
