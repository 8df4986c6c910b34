//! `noetl workers`: lists the workers of a server.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::workers::RuntimeView;

use super::format::time;
use crate::arguments::WorkersArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{Table, TableCell};
use crate::remote;

pub(crate) fn main(arguments: &WorkersArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let call = calls::workers(arguments.status.as_deref(), arguments.name.as_deref());
        let answer = remote.ask(call).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value).render(style, "no workers have registered")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(workers: &[RuntimeView]) -> Table<6> {
    let mut table = Table::new(["NAME", "STATUS", "CAPACITY", "ISOLATION", "HEARTBEAT", "ADDRESS"]);
    for worker in workers {
        table.row([
            TableCell::new(&worker.name),
            TableCell::status(&worker.status),
            TableCell::maybe(worker.capacity),
            TableCell::maybe(isolation(worker)),
            TableCell::new(time(worker.heartbeat)),
            TableCell::maybe(worker.uri.as_ref()),
        ]);
    }
    table
}

/// Returns the isolation level that a worker registered. Published workers register none.
fn isolation(worker: &RuntimeView) -> Option<u64> {
    worker.runtime.as_ref()?.get("isolation")?.get("level")?.as_u64()
}
