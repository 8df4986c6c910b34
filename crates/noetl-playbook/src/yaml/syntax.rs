//! Reports syntax errors with a likely correction.

use saphyr_parser::ScanError;

use super::DEPTH_MAX;
use super::source::SourceText;
use crate::diagnostic::SourcePos;
use crate::diagnostics::Diagnostics;

/// Reports an error of the parser.
pub(super) fn report(error: &ScanError, source: &SourceText<'_>, findings: &mut Diagnostics) {
    let mark = error.marker();
    let mut at = super::build::place(mark);
    if error.info() == "recursion limit exceeded" {
        return too_deep(at, findings);
    }
    let line = source.line(at.line);
    let indentation = line.len() - line.trim_start().len();
    let help = if let Some(tab) = line[..indentation].find('\t') {
        at.column = u32::try_from(tab).map_or(at.column, |column| column + 1);
        "indent with spaces; YAML allows no tabs there"
    } else if has_bare_template(source, at.line) {
        "put a value that begins with a template in quotes: key: \"{{ … }}\""
    } else if error.info().contains("mapping values are not allowed") {
        "put a value that holds ': ' in quotes, or correct the indentation of this line"
    } else if error.info().contains("unknown anchor") {
        "declare the anchor with '&name' before '*name', or put the value in quotes"
    } else {
        "check indentation, quotes and brackets on this line and the one before it"
    };
    let message = format!("this is not valid YAML: {}", error.info());
    findings.error("E000", at, "", message, help);
}

/// Reports a document that is nested too deeply.
pub(super) fn too_deep(at: SourcePos, findings: &mut Diagnostics) {
    let message = format!("the document is nested deeper than {DEPTH_MAX} levels");
    findings.error("E007", at, "", message, "make it flatter");
}

/// Returns `true` if the line, or the one before it, has an unquoted value that starts with `{{`.
/// YAML parses it as two nested mappings.
fn has_bare_template(source: &SourceText<'_>, line: u32) -> bool {
    let bare = |line: &str| {
        let line = line.trim_start();
        line.starts_with("{{")
            || line.contains(": {{")
            || line.contains("- {{")
            || line.contains("[{{")
    };
    bare(source.line(line)) || (line > 1 && bare(source.line(line - 1)))
}
