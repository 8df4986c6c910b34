//! `noetl status`: how an execution stands.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::executions::StatusReply;
use noetl_model::ExecutionId;

use super::follow::{self, Ended};
use super::shown::time;
use crate::arguments::StatusArguments;
use crate::failure::Failure;
use crate::output::answers::show;
use crate::output::style::Style;
use crate::output::table::{Cell, Tone, fields};
use crate::remote::{self, Remote};

/// How a command ends that was interrupted.
const INTERRUPTED: u8 = 130;

pub(crate) fn main(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    remote::run(&arguments.remote, async |remote| match arguments.follow {
        true => follow_and_print(&remote, arguments.id).await,
        false => print(&remote, arguments.id).await,
    })
}

/// Shows events until an execution is over, then how it stands.
pub(super) async fn follow_and_print(
    remote: &Remote,
    id: ExecutionId,
) -> Result<ExitCode, Failure> {
    match follow::log_to_end(remote, id).await? {
        Ended::Over(_) => print(remote, id).await,
        Ended::Interrupted => {
            follow::note_interrupted(id);
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Prints how an execution stands; one that ended badly is a bad end of the command, too.
async fn print(remote: &Remote, id: ExecutionId) -> Result<ExitCode, Failure> {
    let answer = remote.ask(calls::status(id)).await?;
    show(remote.form, &answer.body, |style| table(&answer.value, style))?;
    Ok(exit_code(&answer.value.status))
}

/// How a command ends that says how an execution did.
pub(super) fn exit_code(status: &str) -> ExitCode {
    match status {
        "FAILED" | "CANCELLED" => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// How a command ends that was interrupted.
pub(super) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

fn table(reply: &StatusReply, style: Style) -> String {
    let progress = reply.progress;
    let mut steps = format!("{} completed", progress.completed_steps);
    if progress.running_steps > 0 {
        steps.push_str(&format!(", {} running", progress.running_steps));
    }
    if progress.failed_steps > 0 {
        steps.push_str(&format!(", {} failed", progress.failed_steps));
    }
    let mut shown = vec![
        ("execution", Cell::new(reply.execution_id)),
        ("status", Cell::status(&reply.status)),
        ("steps", Cell::new(steps)),
        ("started", Cell::new(time(reply.start_time))),
    ];
    shown.extend(reply.end_time.map(|at| ("ended", Cell::new(time(at)))));
    let seconds = reply.duration_seconds.map(|seconds| format!("{seconds:.3}s"));
    let duration = reply.duration_human.clone().or(seconds);
    shown.extend(duration.map(|text| ("duration", Cell::new(text))));
    if reply.status == "RUNNING" {
        shown.extend(reply.current_step.as_ref().map(|step| ("current", Cell::new(step))));
    }
    shown.extend(reply.error.as_ref().map(|why| ("error", Cell::new(why).toned(Tone::Bad))));
    if !reply.completed_steps.is_empty() {
        shown.push(("done", Cell::new(reply.completed_steps.join(", "))));
    }
    fields(&shown, style)
}
