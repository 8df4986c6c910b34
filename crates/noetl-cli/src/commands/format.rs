//! Formats response values for people.

use noetl_api::Diagnostic;
use noetl_model::Timestamp;

use crate::output::style::{TextStyle, one_line};

/// Formats a time in UTC with a resolution of one second.
pub(super) fn time(at: Timestamp) -> String {
    match at.to_jiff() {
        Some(at) => at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        None => at.to_string(),
    }
}

/// Formats a time of day in UTC with a resolution of one millisecond.
pub(super) fn clock(at: Timestamp) -> String {
    match at.to_jiff() {
        Some(at) => at.strftime("%H:%M:%S%.3f").to_string(),
        None => at.to_string(),
    }
}

/// Returns untrusted text on one line, shortened to at most `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let text = one_line(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Formats a count with its noun, such as `1 execution` or `2 executions`.
pub(super) fn count(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

/// Formats the diagnostics that a server returned for a document.
pub(super) fn diagnostics(name: &str, diagnostics: &[Diagnostic], style: TextStyle) -> String {
    let mut text = String::new();
    for Diagnostic { severity, code, line, column, path, message, help } in diagnostics {
        let label = format!("{severity}[{code}]");
        let label = if severity == "error" { style.bad(&label) } else { style.warn(&label) };
        text.push_str(&format!("{name}:{line}:{column}: {label}: {}\n", one_line(message)));
        if !path.is_empty() {
            text.push_str(&format!("  {} {}\n", style.faint("at"), one_line(path)));
        }
        if let Some(help) = help {
            text.push_str(&format!("  {} {}\n", style.good("help:"), one_line(help)));
        }
    }
    text
}
