//! State shared by all decoders.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_template::SyntaxError;

use super::cursor::{Cursor, Path};
use super::names::Names;
use super::split::Crossings;
use super::suggest;
use super::workbook::Workbook;
use crate::diagnostic::SourcePos;
use crate::diagnostics::Diagnostics;
use crate::graph::StepIx;
use crate::yaml::{NodeKind, SourceText, locate};

/// Maximum number of comparisons of unknown step names with known ones per document. Ten mistakes
/// in a playbook of 100,000 steps get a suggestion each; a thousand must not take minutes.
const COMPARISONS_MAX: usize = 1_000_000;

/// Maximum number of bytes and values that workbook tasks and shared arguments may expand to, so
/// that a small document cannot become a large playbook. Aliases have the same budget.
const UNFOLDED_MAX: usize = 16 * 1024 * 1024;

/// Text of the document, diagnostics so far, and known names.
#[derive(Debug)]
pub(super) struct Context<'t> {
    pub(super) findings: Diagnostics,
    pub(super) steps: HashMap<Arc<str>, StepIx>,
    pub(super) workbook: Workbook,
    pub(super) names: Names,
    /// Whether unknown keys are errors.
    pub(super) strict: bool,
    /// Whether templates may name secrets at the current position. True only for values that a
    /// worker renders for a tool.
    pub(super) secrets: bool,
    /// Jumps and local assignments decoded since the last call of `take`.
    pub(super) crossings: Crossings,
    source: SourceText<'t>,
    comparisons: usize,
    unfolded: usize,
}

impl<'t> Context<'t> {
    pub(super) fn new(source: SourceText<'t>, findings: Diagnostics) -> Self {
        Self {
            findings,
            steps: HashMap::new(),
            workbook: Workbook::default(),
            names: Names::default(),
            strict: false,
            secrets: false,
            crossings: Crossings::default(),
            source,
            comparisons: 0,
            unfolded: 0,
        }
    }

    /// Returns a line of the document. Lines count from 1.
    pub(super) fn line(&self, line: u32) -> &'t str {
        self.source.line(line)
    }

    /// Adds the size of a value that is repeated `times` times to the expansion budget. Returns
    /// `true` if the budget still suffices; reports an error the first time it does not.
    pub(super) fn unfold(&mut self, at: &Cursor<'_>, size: usize, times: usize) -> bool {
        if self.unfolded > UNFOLDED_MAX {
            return false;
        }
        self.unfolded = self.unfolded.saturating_add(size.saturating_mul(times));
        if self.unfolded <= UNFOLDED_MAX {
            return true;
        }
        let message = format!("shared settings unfold to more than {UNFOLDED_MAX} bytes");
        self.error("E007", at, message, "repeat less, or pass the data as workload");
        false
    }

    /// Reports an error at a value.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        at: &Cursor<'_>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.findings.error(code, at.node.at, at.path, message, help);
    }

    /// Reports a warning at a value.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        at: &Cursor<'_>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.findings.warning(code, at.node.at, at.path, message, help);
    }

    /// Reports an error at a key, if the key and not its value is wrong.
    pub(super) fn error_at(
        &mut self,
        code: &'static str,
        (place, path): (SourcePos, Path<'_>),
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.findings.error(code, place, path, message, help);
    }

    /// Reports a warning at a key, if the key and not its value is wrong.
    pub(super) fn warning_at(
        &mut self,
        code: &'static str,
        (place, path): (SourcePos, Path<'_>),
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.findings.warning(code, place, path, message, help);
    }

    /// Reports a construct of the language that this version cannot run.
    pub(super) fn unsupported(&mut self, place: (SourcePos, Path<'_>), what: &str, help: &str) {
        let message = format!("{what} not available in this version");
        self.error_at("E090", place, message, help);
    }

    /// Reports a deprecated name that still works.
    pub(super) fn older(
        &mut self,
        place: (SourcePos, Path<'_>),
        what: impl Into<String>,
        rewrite: impl Into<String>,
    ) {
        self.warning_at("W101", place, what, rewrite);
    }

    /// Reports a value of the wrong type.
    pub(super) fn expected(&mut self, at: &Cursor<'_>, expected: &str, help: impl Into<String>) {
        let message = format!("expected {expected}, found {}", at.node.described());
        self.error("E009", at, message, help);
    }

    /// Returns `true` if a value is a mapping; reports an error otherwise.
    pub(super) fn is_map(&mut self, at: &Cursor<'_>, help: &str) -> bool {
        if !at.is_map() {
            self.expected(at, "a mapping", help);
        }
        at.is_map()
    }

    /// Reports a value that is not among the permitted words.
    pub(super) fn not_one_of(&mut self, code: &'static str, at: &Cursor<'_>, words: &[&str]) {
        let choices = suggest::list(words);
        match at.text() {
            Some(text) => {
                let keeps = self.findings.keeps_errors();
                let help = keeps.then(|| suggest::among(text, words)).flatten().unwrap_or_default();
                let help = format!("{help}write {choices}");
                self.error(code, at, format!("'{text}' is not possible here"), help);
            }
            None => {
                let message = format!("expected a word, found {}", at.node.described());
                self.error(code, at, message, format!("write {choices}"));
            }
        }
    }

    /// Reports a template that does not compile, at the character of the syntax error.
    pub(super) fn syntax(&mut self, at: &Cursor<'_>, error: &SyntaxError) {
        let place = match &at.node.kind {
            NodeKind::Text(text, style) => {
                let inside = (error.line, error.column);
                locate(&self.source, at.node.at, (text, *style), inside)
            }
            _ => at.node.at,
        };
        let message = format!("the template does not compile: {}", error.message);
        let help = "check the braces, quotes and names of the template";
        self.findings.error("E050", place, at.path, message, help);
    }

    /// Returns the step name closest to an unknown name.
    pub(super) fn similar_step(&mut self, name: &str) -> Option<String> {
        if !self.findings.keeps_errors() || self.comparisons + self.steps.len() > COMPARISONS_MAX {
            return None;
        }
        self.comparisons += self.steps.len();
        suggest::closest(name, self.steps.keys().map(|known| &**known)).map(str::to_owned)
    }
}
