//! `noetl workers`: lists the workers of a server.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::workers::RuntimeView;

use super::shown::time;
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
            table(&answer.value).render(style, "no workers have registered")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(workers: &[RuntimeView]) -> Table<6> {
    let mut table = Table::new(["NAME", "STATUS", "CAPACITY", "ISOLATION", "HEARTBEAT", "ADDRESS"]);
    for worker in workers {
        table.row([
            Cell::new(&worker.name),
            Cell::status(&worker.status),
            Cell::maybe(worker.capacity),
            Cell::maybe(isolation(worker)),
            Cell::new(time(worker.heartbeat)),
            Cell::maybe(worker.uri.as_ref()),
        ]);
    }
    table
}

/// Returns the isolation level that a worker registered. Published workers register none.
fn isolation(worker: &RuntimeView) -> Option<u64> {
    worker.runtime.as_ref()?.get("isolation")?.get("level")?.as_u64()
}
