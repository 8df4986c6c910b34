//! `noetl workers`: who runs the steps of a server's executions.

use std::process::ExitCode;

use noetl_api::calls;
use serde_json::Value;

use crate::arguments::WorkersArguments;
use crate::failure::Failure;
use crate::output::answers::show;
use crate::output::table::{Cell, Table};
use crate::remote;

pub(crate) fn main(arguments: &WorkersArguments) -> Result<ExitCode, Failure> {
    remote::run(&arguments.remote, async |remote| {
        let call = calls::workers(arguments.status.as_deref(), arguments.name.as_deref());
        let answer = remote.ask(call).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.body).render(style, "no workers have registered")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(body: &Value) -> Table<5> {
    let text = |value: &Value| match value {
        Value::Null => Cell::new("-"),
        Value::String(text) => Cell::new(text),
        other => Cell::new(other),
    };
    let mut table = Table::new(["NAME", "STATUS", "CAPACITY", "HEARTBEAT", "ADDRESS"]);
    for worker in body.as_array().into_iter().flatten() {
        table.row([
            text(&worker["name"]),
            Cell::status(worker["status"].as_str().unwrap_or("-")),
            text(&worker["capacity"]),
            text(&worker["heartbeat"]),
            text(&worker["uri"]),
        ]);
    }
    table
}
