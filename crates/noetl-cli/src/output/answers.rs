//! Prints server responses in the requested format.

use serde_json::Value;

use super::style::{self, TextStyle};
use super::{OutputFormat, data, json, shown, yaml};
use crate::error::CliError;

/// Prints a response, formatted by `table` for people, or in full as JSON or YAML.
pub(crate) fn show(
    form: OutputFormat,
    body: &Value,
    table: impl FnOnce(TextStyle) -> String,
) -> Result<(), CliError> {
    match form {
        OutputFormat::Table => data(table(style::of_stdout()).as_bytes()),
        OutputFormat::Json => json(body),
        OutputFormat::Yaml => shown(&yaml::document(body)),
    }
}

/// Prints one of many items: JSON on a single line, YAML as a separate document.
pub(crate) fn show_item(
    form: OutputFormat,
    body: &Value,
    line: impl FnOnce(TextStyle) -> String,
) -> Result<(), CliError> {
    match form {
        OutputFormat::Table => data(line(style::of_stdout()).as_bytes()),
        OutputFormat::Json => shown(&format!("{body}\n")),
        OutputFormat::Yaml => shown(&format!("---\n{}", yaml::document(body))),
    }
}
