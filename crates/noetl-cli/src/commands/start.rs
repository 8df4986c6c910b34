//! `noetl execute`, `retry`, `rerun`, and `fork`: start executions.

use std::process::ExitCode;

use noetl_api::execute::{ExecuteReply, ExecuteRequest};
use noetl_api::executions::{ForkReply, ForkRequest, RerunRequest, RetryRequest};
use noetl_api::{ApiCall, Id, Response, Version, calls};

use super::{payload, status};
use crate::arguments::{
    ExecuteArguments, ExecuteCommand, ForkArguments, RemoteArguments, RerunArguments,
    RetryArguments, StartArguments,
};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::{self, OutputFormat};
use crate::remote::{self, Remote};

pub(crate) fn main(arguments: &ExecuteArguments) -> Result<ExitCode, CliError> {
    match &arguments.command {
        Some(ExecuteCommand::Playbook(arguments)) => execute(arguments),
        Some(ExecuteCommand::Status(arguments)) => status::main(arguments),
        Some(ExecuteCommand::Rerun(arguments)) => rerun(arguments),
        None => execute(&arguments.start),
    }
}

pub(crate) fn execute(arguments: &StartArguments) -> Result<ExitCode, CliError> {
    let request = ExecuteRequest {
        path: arguments.path.clone(),
        version: arguments.version.map(Version::Number),
        payload: payload::workload(&arguments.workload)?,
        execution_pool: arguments.pool.clone(),
        ..ExecuteRequest::default()
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::execute(&request)).await?;
        let id = answer.value.execution_id;
        if !arguments.follow {
            print_started(&remote, &answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::note(&format!("execution {id} {}", answer.value.status));
        status::follow_and_print(&remote, id.into()).await
    })
}

pub(crate) fn rerun(arguments: &RerunArguments) -> Result<ExitCode, CliError> {
    let request = RerunRequest { workload: payload::workload(&arguments.workload)? };
    remote::run(&arguments.of.remote, async |remote| {
        let answer = remote.ask(calls::rerun(arguments.of.id, &request)).await?;
        print_started(&remote, &answer)?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn retry(arguments: &RetryArguments) -> Result<ExitCode, CliError> {
    let request = RetryRequest {
        from: arguments.from.clone(),
        workload: payload::workload(&arguments.workload)?,
        version: None,
    };
    forked(&arguments.of.remote, || calls::retry(arguments.of.id, &request))
}

pub(crate) fn fork(arguments: &ForkArguments) -> Result<ExitCode, CliError> {
    let request = ForkRequest {
        at: arguments.at.map(Id::text),
        workload: payload::workload(&arguments.workload)?,
        version: None,
    };
    forked(&arguments.of.remote, || calls::fork(arguments.of.id, &request))
}

/// Starts an execution that copies events of another, and prints it.
fn forked(
    arguments: &RemoteArguments,
    call: impl FnOnce() -> ApiCall<ForkReply>,
) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(call()).await?;
        let ForkReply { execution_id, status, forked_from, .. } = &answer.value;
        show(remote.form, &answer.body, |_| {
            let from = forked_from.execution_id;
            let what = match forked_from.seq {
                0 => format!("with the workload of {from}"),
                seq => format!("with the past of {from} up to event {seq}"),
            };
            format!("execution {execution_id} {status} {what}\n")
        })?;
        hint(&remote, *execution_id);
        Ok(ExitCode::SUCCESS)
    })
}

fn print_started(remote: &Remote, answer: &Response<ExecuteReply>) -> Result<(), CliError> {
    let ExecuteReply { execution_id, status, .. } = &answer.value;
    show(remote.form, &answer.body, |_| format!("execution {execution_id} {status}\n"))?;
    hint(remote, *execution_id);
    Ok(())
}

/// Prints the next command to try, in the table format only.
fn hint(remote: &Remote, id: Id) {
    if remote.form == OutputFormat::Table {
        output::note(&format!("see `noetl status {id} --follow`"));
    }
}
