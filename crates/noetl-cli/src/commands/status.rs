//! `noetl status`: prints the status of an execution.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::executions::StatusReply;
use noetl_model::ExecutionId;

use super::follow::{self, FollowEnd};
use super::format::time;
use crate::arguments::StatusArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::{TextStyle, one_line};
use crate::output::table::{TableCell, Tone, named};
use crate::remote::{self, Remote};

/// Length of the rules above and below a status, in characters.
const RULE: usize = 60;

const INTERRUPTED: u8 = 130;

pub(crate) fn main(arguments: &StatusArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.of.remote, async |remote| match arguments.follow {
        true => follow_and_print(&remote, arguments.of.id).await,
        false => print(&remote, arguments.of.id).await,
    })
}

/// Prints events until the execution ends, then its status.
pub(super) async fn follow_and_print(
    remote: &Remote,
    id: ExecutionId,
) -> Result<ExitCode, CliError> {
    match follow::log_to_end(remote, id).await? {
        FollowEnd::Over(_) => print(remote, id).await,
        FollowEnd::Interrupted => {
            follow::note_interrupted(id);
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Prints the status of an execution. The exit code is 1 if it failed or was cancelled.
async fn print(remote: &Remote, id: ExecutionId) -> Result<ExitCode, CliError> {
    let answer = remote.ask(calls::status(id)).await?;
    show(remote.form, &answer.body, |style| table(&answer.value, style))?;
    Ok(exit_code(&answer.value.status))
}

/// Returns the exit code for the status of an execution.
pub(super) fn exit_code(status: &str) -> ExitCode {
    match status {
        "FAILED" | "CANCELLED" => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Returns the exit code after Ctrl-C.
pub(super) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Formats a status as `Name: value` lines, which scripts parse.
fn table(reply: &StatusReply, style: TextStyle) -> String {
    let progress = reply.progress;
    let mut steps = format!("{} completed", progress.completed_steps);
    if progress.running_steps > 0 {
        steps.push_str(&format!(", {} running", progress.running_steps));
    }
    if progress.failed_steps > 0 {
        steps.push_str(&format!(", {} failed", progress.failed_steps));
    }
    let mut shown = vec![
        ("Execution", TableCell::new(reply.execution_id)),
        ("Status", TableCell::status(&reply.status)),
        ("Steps", TableCell::new(steps)),
        ("Started", TableCell::new(time(reply.start_time))),
    ];
    shown.extend(reply.end_time.map(|at| ("Ended", TableCell::new(time(at)))));
    let seconds = reply.duration_seconds.map(|seconds| format!("{seconds:.3}s"));
    let duration = reply.duration_human.clone().or(seconds);
    shown.extend(duration.map(|text| ("Duration", TableCell::new(text))));
    if reply.status == "RUNNING" {
        shown.extend(reply.current_step.as_ref().map(|step| ("Current", TableCell::new(step))));
    }
    shown.extend(reply.error.as_ref().map(|why| ("Error", TableCell::new(why).toned(Tone::Bad))));
    let rule = Tone::of_status(&reply.status).paint(style, &"=".repeat(RULE));
    let mut text = format!("{rule}\n{}", named(&shown, style));
    if !reply.completed_steps.is_empty() {
        text.push_str("Completed steps:\n");
        for step in &reply.completed_steps {
            text.push_str(&format!("  - {}\n", one_line(step)));
        }
    }
    text + &rule + "\n"
}
