//! What a server answered, in the form that is wanted.

use serde_json::Value;

use super::style::{self, Style};
use super::{data, json, shown, yaml};
use crate::arguments::Form;
use crate::failure::Failure;

/// Prints an answer: for people by `table`, else all the server said.
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

/// Prints one of many: as JSON on a line of its own, as YAML a document of its own.
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
