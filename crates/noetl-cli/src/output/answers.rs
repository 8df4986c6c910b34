//! Prints server responses in the requested format.

use serde_json::Value;

use super::style::{self, Style};
use super::{data, json, shown, yaml};
use crate::arguments::Form;
use crate::failure::Failure;

/// Prints a response, formatted by `table` for people, or in full as JSON or YAML.
pub(crate) fn show(
    form: Form,
    body: &Value,
    table: impl FnOnce(Style) -> String,
) -> Result<(), Failure> {
    match form {
        Form::Table => data(table(style::of_stdout()).as_bytes()),
        Form::Json => json(body),
        Form::Yaml => shown(&yaml::document(body)),
    }
}

/// Prints one of many items: JSON on a single line, YAML as a separate document.
pub(crate) fn show_item(
    form: Form,
    body: &Value,
    line: impl FnOnce(Style) -> String,
) -> Result<(), Failure> {
    match form {
        Form::Table => data(line(style::of_stdout()).as_bytes()),
        Form::Json => shown(&format!("{body}\n")),
        Form::Yaml => shown(&format!("---\n{}", yaml::document(body))),
    }
}
