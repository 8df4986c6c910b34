//! `--fix`: older shapes rewritten in the file itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use noetl_playbook::fix::{Change, fix};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use crate::arguments::{CheckArguments, Output};
use crate::commands::document::{self, Document};
use crate::failure::{Failure, Kind};
use crate::output;

/// What was rewritten.
pub(super) struct Fixed {
    /// The text as it is now, or would be.
    pub(super) text: String,
    changes: Vec<Change>,
    /// What differs, when it was asked for instead of writing.
    diff: Option<String>,
}

/// Rewrites a document and writes it where it came from, unless only the difference is wanted.
pub(super) fn apply(
    file: &Path,
    document: &Document,
    arguments: &CheckArguments,
) -> Result<Fixed, Failure> {
    // Only playbooks have older shapes.
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
        let found = difference(&document.name, &document.text, &text);
        if in_text {
            output::data(found.as_bytes())?;
        }
        diff = Some(found);
    } else if document::is_stdin(file) {
        if in_text {
            output::data(text.as_bytes())?;
        }
    } else if text != document.text {
        write(file, &text).map_err(|error| {
            let message = format!("could not write {}: {error}", document.name);
            Failure::new(Kind::Config, message).hint("the file is as it was")
        })?;
    }
    Ok(Fixed { text, changes, diff })
}

impl Fixed {
    /// `3 rewritten`, or what would be.
    pub(super) fn summary(&self, dry_run: bool) -> String {
        let verb = if dry_run { "to rewrite" } else { "rewritten" };
        format!("{} {verb}", self.changes.len())
    }

    /// What a report says beside the findings.
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

/// Puts a new text in the place of a file in one step, so that a full disk or a crash leaves the old
/// one. A link stays a link: what it leads to is written.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(file)?;
    let permissions = fs::metadata(&target)?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    let beside = beside(&target);
    let written = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, permissions))
        .and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // Nothing depends on what is left of it.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name in the same directory that nobody else uses.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    target.with_file_name(format!(".{name}.{}", std::process::id()))
}
