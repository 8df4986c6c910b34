//! What people see. Colour only on a terminal that wants it; data on stdout, all else on stderr.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this is for")]

pub(crate) mod diagnostics;
pub(crate) mod progress;
pub(crate) mod style;

use serde_json::Value;

use crate::failure::Failure;

/// Prints a result for people: text as it is, anything else as indented JSON.
pub(crate) fn result(value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => println!("{text}"),
        other => println!("{other:#}"),
    }
}

/// Prints one JSON document.
pub(crate) fn json(value: &Value) {
    println!("{value:#}");
}

/// Prints a line that is not data.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// Prints why a command could not do its work.
pub(crate) fn failure(failure: &Failure) {
    let style = style::of_stderr();
    eprintln!("{}: {}", style.bad("error"), failure.text());
    if let Some(hint) = failure.hint_text() {
        eprintln!("  {}: {hint}", style.faint("help"));
    }
}
