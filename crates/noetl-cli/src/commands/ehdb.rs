//! `noetl ehdb query`: prints executions and events, with every ID as text.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::ehdb::{EhdbEvent, EhdbExecution};
use noetl_model::ExecutionId;

use super::shown::time;
use crate::arguments::EhdbQuery;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::output::answers::show;
use crate::output::style::Style;
use crate::output::table::{Cell, Table, fields};
use crate::remote;

pub(crate) fn main(query: &EhdbQuery) -> Result<ExitCode, Failure> {
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

fn unknown(id: ExecutionId) -> Failure {
    Failure::new(Kind::User, format!("Execution not found: {id}"))
}

fn executions(rows: &[EhdbExecution]) -> Table<5> {
    let mut table = Table::new(["ID", "STATUS", "PATH", "EVENTS", "STARTED"]);
    for row in rows {
        table.row([
            Cell::new(row.execution_id),
            Cell::status(&row.status),
            Cell::new(&row.path),
            Cell::new(row.event_count),
            Cell::new(time(row.started_at)),
        ]);
    }
    table
}

fn one(state: &EhdbExecution, style: Style) -> String {
    let mut shown = vec![
        ("execution", Cell::new(state.execution_id)),
        ("status", Cell::status(&state.status)),
        ("terminal", Cell::new(state.terminal)),
        ("path", Cell::new(&state.path)),
        ("catalog", Cell::new(state.catalog_id)),
        ("events", Cell::new(state.event_count)),
        ("started", Cell::new(time(state.started_at))),
    ];
    shown.extend(state.completed_at.map(|at| ("completed", Cell::new(time(at)))));
    shown.extend(state.current_node.as_ref().map(|node| ("current", Cell::new(node))));
    shown.extend(state.parent_execution_id.map(|id| ("parent", Cell::new(id))));
    fields(&shown, style)
}

fn events(rows: &[EhdbEvent]) -> Table<5> {
    let mut table = Table::new(["ID", "TYPE", "NODE", "STATUS", "AT"]);
    for row in rows {
        table.row([
            Cell::new(row.event_id),
            Cell::maybe(row.event_type.as_ref()),
            Cell::maybe(row.node_name.as_ref()),
            Cell::maybe(row.status.as_ref()),
            Cell::new(time(row.created_at)),
        ]);
    }
    table
}
