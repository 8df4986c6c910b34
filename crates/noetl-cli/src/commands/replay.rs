//! `noetl replay`: prints execution state at any event or time.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::replay::ReplayQuery;
use serde_json::Value;

use crate::arguments::ReplayArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::TextStyle;
use crate::output::table::{TableCell, Tone, fields};
use crate::remote;

pub(crate) fn main(arguments: &ReplayArguments) -> Result<ExitCode, CliError> {
    let query = ReplayQuery {
        execution_id: Some(arguments.of.id.to_string()),
        as_of_event_id: arguments.at_event.clone(),
        as_of_time: arguments.at_time.clone(),
        projection: arguments.projection.clone(),
        ..ReplayQuery::default()
    };
    remote::run(&arguments.of.remote, async |remote| {
        let answer = remote.ask(calls::replay(&query)).await?;
        show(remote.form, &answer.body, |style| summary(&answer.body, style))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Formats a state in a few lines: the fields of the execution, and the number of its other
/// objects.
fn summary(state: &Value, style: TextStyle) -> String {
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => TableCell::new("-"),
        Some(Value::String(text)) => TableCell::new(text),
        Some(other) => TableCell::new(other),
    };
    let execution = &state["execution"];
    let status = text(execution.get("status"));
    let tone = Tone::of_status(execution["status"].as_str().unwrap_or_default());
    let size = |name: &str| TableCell::new(state[name].as_object().map_or(0, serde_json::Map::len));
    let shown = [
        ("execution", text(state.get("execution_id"))),
        ("status", status.toned(tone)),
        ("events", text(state.get("event_count"))),
        ("last event", text(state.get("last_event_id"))),
        ("last type", text(state.get("last_event_type"))),
        ("stages", size("stages")),
        ("frames", size("frames")),
        ("commands", size("commands")),
        ("loops", size("loops")),
        ("objects", size("business_objects")),
        ("checksum", checksum(&state["checksum"])),
    ];
    let mut out = fields(&shown, style);
    if state["truncated"] == Value::Bool(true) {
        out.push_str("only the oldest events were folded; --output json tells how many\n");
    }
    out
}

fn checksum(value: &Value) -> TableCell {
    let text = value.as_str().or_else(|| value.get("value").and_then(Value::as_str));
    TableCell::maybe(text)
}
