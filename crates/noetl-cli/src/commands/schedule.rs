//! `noetl schedule`: manages schedules of a server.

use std::process::ExitCode;

use noetl_api::schedules::{ScheduleRequest, ScheduleView};
use noetl_api::{ApiCall, calls};
use noetl_model::{Map, Value};

use super::payload;
use crate::arguments::{
    CreateScheduleArguments, RemoteArguments, ScheduleCommand, WorkloadArguments,
};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::one_line;
use crate::output::table::{Table, TableCell, fields};
use crate::remote;

pub(crate) fn main(command: &ScheduleCommand) -> Result<ExitCode, CliError> {
    use ScheduleCommand::{Create, Delete, Get, List, Pause, Resume, Run};
    match command {
        List(of) => list(&of.remote),
        Get(of) => one(&of.remote, calls::schedule(of.id)),
        Create(of) => one(&of.remote, calls::create_schedule(&wanted(of)?)),
        Pause(of) => one(&of.remote, calls::act_on_schedule(of.id, "pause")),
        Resume(of) => one(&of.remote, calls::act_on_schedule(of.id, "resume")),
        Run(of) => run(of.id, &of.remote),
        Delete(of) => delete(of.id, &of.remote),
    }
}

fn wanted(arguments: &CreateScheduleArguments) -> Result<ScheduleRequest, CliError> {
    let (set, payload) = (arguments.set.clone(), arguments.payload.clone());
    let payload = payload::workload(&WorkloadArguments { set, payload, input: None })?;
    let text = |value: &Option<String>| value.clone().map(Value::from);
    let values = [
        ("playbook", Some(Value::from(arguments.playbook.clone()))),
        ("version", arguments.version.map(Value::from)),
        ("cron", text(&arguments.cron)),
        ("timezone", text(&arguments.timezone)),
        ("every", text(&arguments.every)),
        ("at", text(&arguments.at)),
        ("missed", text(&arguments.missed)),
        ("overlap", text(&arguments.overlap)),
        ("execution_pool", text(&arguments.pool)),
        ("enabled", arguments.paused.then_some(Value::Bool(false))),
        ("payload", (!payload.is_empty()).then_some(Value::Object(payload))),
    ];
    let spec = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(ScheduleRequest { name: arguments.name.clone(), spec: spec.collect::<Map>() })
}

/// Formats the run times of a schedule.
fn when(view: &ScheduleView) -> String {
    match (&view.cron, view.interval_seconds, &view.at) {
        (Some(cron), _, _) => match &view.timezone {
            Some(zone) => format!("{cron} ({zone})"),
            None => cron.clone(),
        },
        (None, Some(seconds), _) => format!("every {seconds} s"),
        (None, None, Some(at)) => format!("once at {at}"),
        (None, None, None) => "once".to_owned(),
    }
}

fn state(view: &ScheduleView) -> &'static str {
    match (view.enabled, &view.next_run_at) {
        (false, _) => "PAUSED",
        (true, Some(_)) => "ACTIVE",
        (true, None) => "OVER",
    }
}

fn one(arguments: &RemoteArguments, call: ApiCall<ScheduleView>) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(call).await?;
        let view = &answer.value;
        show(remote.form, &answer.body, |style| {
            let shown = [
                ("schedule", TableCell::new(view.schedule_id)),
                ("name", TableCell::maybe(view.name.as_ref())),
                ("document", TableCell::maybe(view.document.as_ref())),
                ("playbook", TableCell::new(&view.playbook)),
                ("runs", TableCell::new(when(view))),
                ("missed", TableCell::new(&view.missed)),
                ("overlap", TableCell::new(&view.overlap)),
                ("state", TableCell::status(state(view))),
                ("next run", TableCell::maybe(view.next_run_at.as_ref())),
                ("last run", TableCell::maybe(view.last_run_at.as_ref())),
                ("last status", TableCell::maybe(view.last_status.as_ref())),
                ("last execution", TableCell::maybe(view.last_execution_id.as_ref())),
            ];
            fields(&shown, style)
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn list(arguments: &RemoteArguments) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::schedules()).await?;
        show(remote.form, &answer.body, |style| {
            let mut table = Table::new(["ID", "STATE", "NAME", "PLAYBOOK", "RUNS", "NEXT RUN"]);
            for view in &answer.value.schedules {
                table.row([
                    TableCell::new(view.schedule_id),
                    TableCell::status(state(view)),
                    TableCell::maybe(view.name.as_ref()),
                    TableCell::new(&view.playbook),
                    TableCell::new(when(view)),
                    TableCell::maybe(view.next_run_at.as_ref()),
                ]);
            }
            table.render(style, "no schedules")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn run(id: i64, arguments: &RemoteArguments) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::run_schedule(id)).await?;
        show(remote.form, &answer.body, |_| {
            format!("started execution {}\n", answer.value.execution_id)
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn delete(id: i64, arguments: &RemoteArguments) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::delete_schedule(id)).await?;
        show(remote.form, &answer.body, |_| {
            let (id, status) = (answer.value.schedule_id, one_line(&answer.value.status));
            format!("schedule {id}: {status}\n")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}
