//! `noetl check`: reports errors in playbooks, subscriptions, and schedules, with location and fix.

mod against;
mod fix;

use std::path::Path;
use std::process::ExitCode;

use noetl_playbook::{Diagnostic, Severity};
use serde_json::{Value, json};

use super::document;
use crate::arguments::{CheckArguments, Output};
use crate::error::CliError;
use crate::output::{self, diagnostics, style};

pub(crate) fn main(arguments: &CheckArguments) -> Result<ExitCode, CliError> {
    let (mut has_errors, mut differs) = (false, false);
    let mut reports = Vec::new();
    for file in &arguments.files {
        // An unreadable or unwritable file does not stop the check of the other files.
        match check(file, arguments) {
            Ok(checked) => {
                has_errors |= checked.has_errors;
                differs |= checked.differs;
                reports.push(checked.report);
            }
            Err(failure) => {
                has_errors = true;
                output::failure(&failure);
                let name = document::name(file);
                if arguments.output == Output::Text {
                    output::note(&format!("{name}: 1 error"));
                }
                let error = failure.text();
                reports.push(json!({ "file": name, "error": error, "diagnostics": [] }));
            }
        }
    }
    if arguments.output == Output::Json {
        output::json(&json!(reports))?;
    }
    Ok(match (has_errors, differs) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Outcome of the check of one file.
struct Checked {
    report: Value,
    has_errors: bool,
    /// Whether a recorded execution would be decided differently.
    differs: bool,
}

fn check(file: &Path, arguments: &CheckArguments) -> Result<Checked, CliError> {
    let document = document::read(file)?;
    let (text, fixed) = match arguments.fix {
        true => {
            let fixed = fix::apply(file, &document, arguments)?;
            (fixed.text.clone(), Some(fixed))
        }
        false => (document.text, None),
    };
    let diagnostics = found_in(&text);
    if arguments.output == Output::Text {
        let style = style::of_stderr();
        let rendered = diagnostics::render(&document.name, &text, &diagnostics, style);
        if !rendered.is_empty() {
            output::note(rendered.trim_end_matches('\n'));
        }
        let count = diagnostics::count(&diagnostics);
        let made = fixed.as_ref().map(|fixed| fixed.summary(arguments.dry_run));
        let made = made.map(|made| format!("{made}, ")).unwrap_or_default();
        output::note(&format!("{}: {made}{count}", document.name));
    }
    let has_errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let mut report = json!({ "file": document.name, "diagnostics": diagnostics });
    if let (Some(fixed), Some(report)) = (fixed, report.as_object_mut()) {
        report.extend(fixed.into_report());
    }
    let mut differs = false;
    if let (Some(target), false) = (&arguments.against, has_errors)
        && let Some(playbook) = noetl_playbook::check(&text).playbook
    {
        let compared = against::run(&playbook, target, arguments)?;
        differs = compared.differs;
        report["against"] = compared.report;
    }
    Ok(Checked { report, has_errors, differs })
}

/// Returns the diagnostics of a document, which is checked as a subscription or schedule if it
/// declares that kind, else as a playbook.
fn found_in(text: &str) -> Vec<Diagnostic> {
    if noetl_playbook::is_subscription(text) {
        return noetl_playbook::check_subscription(text).diagnostics;
    }
    match noetl_playbook::is_schedule(text) {
        true => noetl_playbook::check_schedule(text).diagnostics,
        false => noetl_playbook::check(text).diagnostics,
    }
}
