//! `noetl cancel` and `noetl cleanup`: cancel executions.

use std::process::ExitCode;

use noetl_api::executions::{CancelRequest, CleanupRequest};
use noetl_api::{ClientError, calls};

use crate::arguments::{CancelArguments, CleanupArguments};
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::one_line;
use crate::output::{self, style};
use crate::remote;

/// Error code of the server for an execution that already ended.
const OVER: &str = "already_finished";

pub(crate) fn cancel(arguments: &CancelArguments) -> Result<ExitCode, CliError> {
    let request =
        CancelRequest { reason: arguments.reason.clone(), cascade: Some(arguments.cascade) };
    remote::run(&arguments.of.remote, async |remote| {
        let answer = match remote.client.ask(calls::cancel(arguments.of.id, &request)).await {
            Ok(answer) => answer,
            Err(ClientError::Refused { body, .. }) if body.code == OVER => {
                // The execution has already ended, so the goal is reached.
                let label = style::of_stderr().warn("warning");
                output::note(&format!("{label}: {}", one_line(&body.error)));
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) => return Err(remote.failure(&error)),
        };
        let reply = &answer.value;
        show(remote.form, &answer.body, |style| {
            let (id, message) = (reply.execution_id, one_line(&reply.message));
            let mut text = format!("execution {id}: {message}\n");
            // The line above already names the execution itself.
            for id in reply.cancelled_executions.iter().filter(|id| **id != reply.execution_id) {
                text.push_str(&format!("  {} {id}\n", style.faint("stopped")));
            }
            text
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn cleanup(arguments: &CleanupArguments) -> Result<ExitCode, CliError> {
    let request = CleanupRequest {
        older_than_minutes: arguments.older_than_minutes,
        dry_run: arguments.dry_run,
    };
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::cleanup(&request)).await?;
        let reply = &answer.value;
        show(remote.form, &answer.body, |_| {
            let ids = reply.execution_ids.iter().map(|id| format!("  {id}\n"));
            format!("{}\n{}", one_line(&reply.message), ids.collect::<String>())
        })?;
        Ok(ExitCode::SUCCESS)
    })
}
