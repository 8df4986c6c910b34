//! `noetl logs`: prints the step logs of an execution.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use noetl_api::logs::LineView;
use noetl_api::{ClientError, calls};
use serde::Deserialize as _;
use serde_json::Value;

use super::follow::{self, FollowEnd};
use super::format::count;
use super::status::{exit_code, interrupted};
use crate::arguments::LogsArguments;
use crate::error::CliError;
use crate::output::answers::{show, show_item};
use crate::output::escape::escaped;
use crate::output::{self, OutputFormat};
use crate::remote::{self, Remote};

/// Lines per page: the maximum that a server returns.
const PAGE: u64 = 5000;

pub(crate) fn main(arguments: &LogsArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.of.remote, async |remote| match arguments.follow {
        true => follow(&remote, arguments).await,
        false => read(&remote, arguments).await,
    })
}

/// Prints lines. The table format reads all pages; JSON and YAML print one response of the server.
async fn read(remote: &Remote, arguments: &LogsArguments) -> Result<ExitCode, CliError> {
    let (id, limit) = (arguments.of.id, arguments.limit);
    let mut after = arguments.after;
    let mut left = limit.unwrap_or(u64::MAX);
    loop {
        let call = calls::logs(id, arguments.command.as_deref(), after, Some(left.min(PAGE)));
        let answer = remote.ask(call).await?;
        let reply = &answer.value;
        if remote.form != OutputFormat::Table {
            show(remote.form, &answer.body, |_| String::new())?;
            return Ok(ExitCode::SUCCESS);
        }
        for line in &reply.lines {
            let place = reply.gaps.iter().find(|gap| {
                gap.command_id == line.command_id && gap.lines > 0 && gap.after == line.n
            });
            print(line)?;
            if let Some(gap) = place {
                let lines = usize::try_from(gap.lines).unwrap_or(usize::MAX);
                output::note(&format!("… {} not kept", count(lines, "line")));
            }
        }
        let received = reply.lines.len() as u64;
        left = left.saturating_sub(received);
        if received == 0 || left == 0 || reply.next_after <= after {
            return Ok(ExitCode::SUCCESS);
        }
        after = reply.next_after;
    }
}

async fn follow(remote: &Remote, arguments: &LogsArguments) -> Result<ExitCode, CliError> {
    let stream = calls::log_stream(arguments.of.id, arguments.command.as_deref());
    let ended = follow::to_end(remote, stream, arguments.after, |item| {
        let line = line(remote, &item)?;
        match remote.form {
            OutputFormat::Table => print(&line),
            form => show_item(form, &item, |_| String::new()),
        }
    });
    match ended.await? {
        FollowEnd::Over(end) => Ok(exit_code(&end.status)),
        FollowEnd::Interrupted => Ok(interrupted()),
    }
}

fn line(remote: &Remote, item: &Value) -> Result<LineView, CliError> {
    LineView::deserialize(item).map_err(|error| remote.failure(&ClientError::Shape(error.into())))
}

/// Prints a line to the stream the step printed it to. On a terminal, control characters are
/// escaped.
fn print(line: &LineView) -> Result<(), CliError> {
    if line.stream != "stderr" {
        return output::shown(&format!("{}\n", line.text));
    }
    match io::stderr().is_terminal() {
        true => output::note(&escaped(&line.text)),
        false => output::note(&line.text),
    }
    Ok(())
}
