//! `noetl check --fix`: rewrites older syntax in the file itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use noetl_playbook::fix::{Change, fix};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use crate::arguments::{CheckArguments, Output};
use crate::commands::document::{self, NamedDocument};
use crate::error::{CliError, ErrorKind};
use crate::output;

pub(super) struct FixSummary {
    /// Text after the rewrite, whether or not it was written.
    pub(super) text: String,
    changes: Vec<Change>,
    /// Unified diff, with `--dry-run` only.
    diff: Option<String>,
}

/// Rewrites a document and writes it back to its file, or to stdout if it came from stdin.
///
/// With `--dry-run`, prints the diff instead.
pub(super) fn apply(
    file: &Path,
    document: &NamedDocument,
    arguments: &CheckArguments,
) -> Result<FixSummary, CliError> {
    // Only playbooks have older syntax.
    let is_other = noetl_playbook::is_subscription(&document.text)
        || noetl_playbook::is_schedule(&document.text);
    let (text, changes) = match is_other {
        true => (document.text.clone(), Vec::new()),
        false => {
            let fixed = fix(&document.text);
            (fixed.text, fixed.changes)
        }
    };
    let in_text = arguments.output == Output::Text;
    if in_text {
        for change in &changes {
            let Change { line, column, what } = change;
            output::note(&format!("{}:{line}:{column}: {what}", document.name));
        }
    }
    let mut diff = None;
    if arguments.dry_run {
        let fix_diff = difference(&document.name, &document.text, &text);
        if in_text {
            output::data(fix_diff.as_bytes())?;
        }
        diff = Some(fix_diff);
    } else if document::is_stdin(file) {
        if in_text {
            output::data(text.as_bytes())?;
        }
    } else if text != document.text {
        write(file, &text).map_err(|error| {
            let message = format!("could not write {}: {error}", document.name);
            CliError::new(ErrorKind::Config, message).hint("the file is as it was")
        })?;
    }
    Ok(FixSummary { text, changes, diff })
}

impl FixSummary {
    /// Returns a summary such as `3 rewritten`, or `3 to rewrite` for a dry run.
    pub(super) fn summary(&self, dry_run: bool) -> String {
        let verb = if dry_run { "to rewrite" } else { "rewritten" };
        format!("{} {verb}", self.changes.len())
    }

    /// Returns the report fields that `--fix` adds to the diagnostics.
    pub(super) fn into_report(self) -> Map<String, Value> {
        let mut report = Map::new();
        report.insert("changes".to_owned(), json!(self.changes));
        report.insert("text".to_owned(), Value::from(self.text));
        if let Some(diff) = self.diff {
            report.insert("diff".to_owned(), Value::from(diff));
        }
        report
    }
}

fn difference(name: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().header(name, name).to_string()
}

/// Replaces the content of a file atomically, so that a full disk or a crash leaves the old
/// content.
///
/// A symbolic link stays a link; its target is replaced.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(file)?;
    let permissions = fs::metadata(&target)?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    let beside = temporary_path(&target);
    let written = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, permissions))
        .and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // A leftover draft is harmless.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Returns the path of a draft in the same directory, unique to this process.
fn temporary_path(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    target.with_file_name(format!(".{name}.{}", std::process::id()))
}
