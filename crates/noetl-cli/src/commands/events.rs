//! `noetl events`: prints the events of an execution.

use std::process::ExitCode;

use noetl_api::calls;

use super::follow::{self, FollowEnd};
use super::status::{exit_code, interrupted};
use crate::arguments::EventsArguments;
use crate::error::CliError;
use crate::output;
use crate::output::answers::{show, show_item};
use crate::remote::{self, Remote};

pub(crate) fn main(arguments: &EventsArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.of.remote, async |remote| match arguments.follow {
        true => follow(&remote, arguments).await,
        false => read(&remote, arguments).await,
    })
}

async fn read(remote: &Remote, arguments: &EventsArguments) -> Result<ExitCode, CliError> {
    let EventsArguments { after, limit, .. } = *arguments;
    let answer = remote.ask(calls::events(arguments.of.id, after, limit)).await?;
    let reply = &answer.value;
    show(remote.form, &answer.body, |style| {
        reply.events.iter().map(|event| follow::line(event, style)).collect()
    })?;
    if reply.next_after < reply.total_events {
        let more = reply.total_events - reply.next_after;
        let next = reply.next_after;
        output::note(&format!("{more} more: go on with --after {next}, or read all with --follow"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn follow(remote: &Remote, arguments: &EventsArguments) -> Result<ExitCode, CliError> {
    let stream = calls::stream(arguments.of.id);
    let ended = follow::to_end(remote, stream, arguments.after, |item| {
        let event = follow::event(remote, &item)?;
        show_item(remote.form, &item, |style| follow::line(&event, style))
    });
    match ended.await? {
        FollowEnd::Over(end) => Ok(exit_code(&end.status)),
        FollowEnd::Interrupted => Ok(interrupted()),
    }
}
