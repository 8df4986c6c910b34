//! `noetl executions`: lists executions.

use std::process::ExitCode;

use noetl_api::calls::{self, ExecutionQuery};
use noetl_api::executions::ExecutionView;

use super::format::{cut, time};
use crate::arguments::ExecutionsArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::table::{Table, TableCell};
use crate::remote;

/// Maximum length of an error in the list, in characters.
const ERROR_MAX: usize = 80;

pub(crate) fn main(arguments: &ExecutionsArguments) -> Result<ExitCode, CliError> {
    let which = ExecutionQuery {
        status: arguments.status.clone(),
        path: arguments.path.clone(),
        parent: arguments.parent,
        limit: arguments.limit,
        offset: arguments.offset,
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::executions(&which)).await?;
        show(remote.form, &answer.body, |style| {
            table(&answer.value).render(style, "no executions")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn table(executions: &[ExecutionView]) -> Table<7> {
    let head = ["ID", "STATUS", "PATH", "VERSION", "STARTED", "DURATION", "ERROR"];
    let mut table = Table::new(head);
    for view in executions {
        table.row([
            TableCell::new(view.execution_id),
            TableCell::status(&view.status),
            TableCell::maybe(view.path.as_ref()),
            TableCell::new(view.version),
            TableCell::new(time(view.started_at)),
            TableCell::maybe(view.duration_human.as_ref()),
            TableCell::new(view.error.as_deref().map_or(String::new(), |why| cut(why, ERROR_MAX))),
        ]);
    }
    table
}
