//! What people see. Colour only on a terminal that wants it; data on stdout, all else on stderr.
//!
//! A reader that went away, as `head` does, is no failure: there is nobody left to tell.

pub(crate) mod answers;
pub(crate) mod diagnostics;
pub(crate) mod escape;
pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod yaml;

use std::io::{self, IsTerminal as _, Write};

use noetl_model::placeholder::without_tags;
use serde_json::Value;

use crate::failure::{Failure, Kind};

/// Prints a result for people: text as it is, anything else as indented JSON.
pub(crate) fn result(value: &Value) -> Result<(), Failure> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => shown(&format!("{text}\n")),
        other => json(other),
    }
}

/// Prints one JSON document.
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    shown(&format!("{value:#}\n"))
}

/// Writes text of others: as it is, but for a terminal with nothing in it that acts on one.
pub(crate) fn shown(text: &str) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => data(escape::escaped(text).as_bytes()),
        false => data(text.as_bytes()),
    }
}

/// Writes data as it is, but for the tags of placeholders, which only the event log holds.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let shown = std::str::from_utf8(bytes).map(without_tags);
    let bytes = shown.as_ref().map_or(bytes, |text| text.as_bytes());
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("could not write to stdout: {error}");
            Err(Failure::new(Kind::Config, message))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a line that is not data.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", without_tags(text));
}

/// Prints why a command could not do its work.
pub(crate) fn failure(failure: &Failure) {
    let style = style::of_stderr();
    note(&format!("{}: {}", style.bad("error"), escape::escaped(&failure.text())));
    if let Some(hint) = failure.hint_text() {
        note(&format!("  {}: {}", style.faint("help"), escape::escaped(hint)));
    }
}
