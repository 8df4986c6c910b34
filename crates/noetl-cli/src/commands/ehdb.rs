//! `noetl ehdb query`: prints executions and events, with every ID as text.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::ehdb::{EhdbEvent, EhdbExecution};
use noetl_model::ExecutionId;

use super::format::time;
use crate::arguments::EhdbQuery;
use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::output::answers::show;
use crate::output::style::TextStyle;
use crate::output::table::{Table, TableCell, fields};
use crate::remote;

pub(crate) fn main(query: &EhdbQuery) -> Result<ExitCode, CliError> {
    match query {
        EhdbQuery::Executions(arguments) => remote::run(&arguments.remote, async |remote| {
            let status = arguments.status.as_deref();
            let call = calls::ehdb_executions(status, arguments.limit, arguments.offset);
            let answer = remote.ask(call).await?;
            show(remote.form, &answer.body, |style| {
                executions(&answer.value.executions).render(style, "no executions")
            })?;
            Ok(ExitCode::SUCCESS)
        }),
        EhdbQuery::Execution(arguments) => remote::run(&arguments.remote, async |remote| {
            let answer = remote.ask(calls::ehdb_execution(arguments.id)).await?;
            let Some(state) = &answer.value.state else { return Err(unknown(arguments.id)) };
            show(remote.form, &answer.body, |style| one(state, style))?;
            Ok(ExitCode::SUCCESS)
        }),
        EhdbQuery::Events(arguments) => remote::run(&arguments.of.remote, async |remote| {
            let call = calls::ehdb_events(arguments.of.id, arguments.after, arguments.limit);
            let answer = remote.ask(call).await?;
            if !answer.value.exists {
                return Err(unknown(arguments.of.id));
            }
            show(remote.form, &answer.body, |style| {
                events(&answer.value.events).render(style, "no events")
            })?;
            if let Some(cursor) = &answer.value.next_cursor {
                output::note(&format!("there may be more: go on with --after {cursor}"));
            }
            Ok(ExitCode::SUCCESS)
        }),
    }
}

fn unknown(id: ExecutionId) -> CliError {
    CliError::new(ErrorKind::User, format!("Execution not found: {id}"))
}

fn executions(rows: &[EhdbExecution]) -> Table<5> {
    let mut table = Table::new(["ID", "STATUS", "PATH", "EVENTS", "STARTED"]);
    for row in rows {
        table.row([
            TableCell::new(row.execution_id),
            TableCell::status(&row.status),
            TableCell::new(&row.path),
            TableCell::new(row.event_count),
            TableCell::new(time(row.started_at)),
        ]);
    }
    table
}

fn one(state: &EhdbExecution, style: TextStyle) -> String {
    let mut shown = vec![
        ("execution", TableCell::new(state.execution_id)),
        ("status", TableCell::status(&state.status)),
        ("terminal", TableCell::new(state.terminal)),
        ("path", TableCell::new(&state.path)),
        ("catalog", TableCell::new(state.catalog_id)),
        ("events", TableCell::new(state.event_count)),
        ("started", TableCell::new(time(state.started_at))),
    ];
    shown.extend(state.completed_at.map(|at| ("completed", TableCell::new(time(at)))));
    shown.extend(state.current_node.as_ref().map(|node| ("current", TableCell::new(node))));
    shown.extend(state.parent_execution_id.map(|id| ("parent", TableCell::new(id))));
    fields(&shown, style)
}

fn events(rows: &[EhdbEvent]) -> Table<5> {
    let mut table = Table::new(["ID", "TYPE", "NODE", "STATUS", "AT"]);
    for row in rows {
        table.row([
            TableCell::new(row.event_id),
            TableCell::maybe(row.event_type.as_ref()),
            TableCell::maybe(row.node_name.as_ref()),
            TableCell::maybe(row.status.as_ref()),
            TableCell::new(time(row.created_at)),
        ]);
    }
    table
}
