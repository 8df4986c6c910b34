//! `noetl check`: what is wrong with a playbook or a subscription, where, and what would be right.

use std::process::ExitCode;

use noetl_playbook::{Diagnostic, Severity};
use serde_json::json;

use super::document;
use crate::arguments::{CheckArguments, Output};
use crate::failure::Failure;
use crate::output::{self, diagnostics, style};

pub(crate) fn main(arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    let mut has_errors = false;
    let mut reports = Vec::new();
    for file in &arguments.files {
        // One file that cannot be read says nothing about the others.
        let document = match document::read(file) {
            Ok(document) => document,
            Err(failure) => {
                has_errors = true;
                output::failure(&failure);
                let name = document::name(file);
                match arguments.output {
                    Output::Text => output::note(&format!("{name}: 1 error")),
                    Output::Json => reports.push(json!({
                        "file": name,
                        "error": failure.text(),
                        "diagnostics": [],
                    })),
                }
                continue;
            }
        };
        let found = found_in(&document.text);
        has_errors |= found.iter().any(|found| found.severity == Severity::Error);
        match arguments.output {
            Output::Text => {
                let style = style::of_stderr();
                let text = diagnostics::render(&document.name, &document.text, &found, style);
                if !text.is_empty() {
                    output::note(text.trim_end_matches('\n'));
                }
                output::note(&format!("{}: {}", document.name, diagnostics::count(&found)));
            }
            Output::Json => reports.push(json!({ "file": document.name, "diagnostics": found })),
        }
    }
    if arguments.output == Output::Json {
        output::json(&json!(reports))?;
    }
    Ok(if has_errors { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// What there is to say about a document: a subscription if it says so, else a playbook.
fn found_in(text: &str) -> Vec<Diagnostic> {
    match noetl_playbook::is_subscription(text) {
        true => noetl_playbook::check_subscription(text).diagnostics,
        false => noetl_playbook::check(text).diagnostics,
    }
}
