//! `noetl query`: runs SQL on the database of a server.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::database::SqlRequest;
use noetl_model::Map;
use serde_json::Value;

use crate::arguments::QueryArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{TableCell, grid};
use crate::remote;

pub(crate) fn main(arguments: &QueryArguments) -> Result<ExitCode, CliError> {
    let request = SqlRequest {
        query: Some(arguments.sql.clone()),
        schema: Some(arguments.schema.clone()),
        ..SqlRequest::default()
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::sql(&request)).await?;
        show(arguments.form(), &answer.body, |style| {
            let (head, rows) = columns(&answer.value.result);
            grid(&head, &rows, style, "no rows")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the column names of all rows in order of first appearance, and the cells.
fn columns(rows: &[Map]) -> (Vec<String>, Vec<Vec<TableCell>>) {
    let mut head: Vec<String> = Vec::new();
    for name in rows.iter().flat_map(Map::keys) {
        if !head.contains(name) {
            head.push(name.clone());
        }
    }
    let cells = rows.iter().map(|row| head.iter().map(|name| cell(row.get(name))).collect());
    let cells = cells.collect();
    (head, cells)
}

fn cell(value: Option<&Value>) -> TableCell {
    match value {
        None | Some(Value::Null) => TableCell::new(""),
        Some(Value::String(text)) => TableCell::new(text),
        Some(other) => TableCell::new(other),
    }
}
