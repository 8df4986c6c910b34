//! Prints data to stdout and messages to stderr, with color only on terminals that support it.
//!
//! A closed pipe, such as that of `head`, is not an error.

pub(crate) mod answers;
pub(crate) mod diagnostics;
pub(crate) mod escape;
mod format;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod yaml;

use std::io::{self, IsTerminal as _, Write};

use noetl_model::placeholder::without_tags;
use serde_json::Value;

use crate::error::{CliError, ErrorKind};

pub(crate) use format::OutputFormat;

/// Prints a result for people: a string as is, any other value as indented JSON.
pub(crate) fn result(value: &Value) -> Result<(), CliError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => shown(&format!("{text}\n")),
        other => json(other),
    }
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &Value) -> Result<(), CliError> {
    shown(&format!("{value:#}\n"))
}

/// Writes untrusted text to stdout. On a terminal, control characters are escaped.
pub(crate) fn shown(text: &str) -> Result<(), CliError> {
    match io::stdout().is_terminal() {
        true => data(escape::escaped(text).as_bytes()),
        false => data(text.as_bytes()),
    }
}

/// Writes data to stdout, without the tags of redaction placeholders, which only the event log
/// contains.
pub(crate) fn data(bytes: &[u8]) -> Result<(), CliError> {
    let shown = std::str::from_utf8(bytes).map(without_tags);
    let bytes = shown.as_ref().map_or(bytes, |text| text.as_bytes());
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("could not write to stdout: {error}");
            Err(CliError::new(ErrorKind::Config, message))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a line to stderr. Ignores write errors.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", without_tags(text));
}

/// Prints the error that ended a command, with its hint.
pub(crate) fn failure(failure: &CliError) {
    let style = style::of_stderr();
    note(&format!("{}: {}", style.bad("error"), escape::escaped(&failure.text())));
    if let Some(hint) = failure.hint_text() {
        note(&format!("  {}: {}", style.faint("help"), escape::escaped(hint)));
    }
}
