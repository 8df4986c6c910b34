//! `noetl why`: explains what an execution waits for, or why it ended.

use std::process::ExitCode;

use noetl_api::calls;
use noetl_api::why::{WaitView, WhyReply};

use super::format::time;
use crate::arguments::ExecutionArguments;
use crate::error::CliError;
use crate::output::answers::show;
use crate::output::style::{TextStyle, one_line};
use crate::output::table::Tone;
use crate::remote;

pub(crate) fn main(arguments: &ExecutionArguments) -> Result<ExitCode, CliError> {
    remote::run(&arguments.remote, async |remote| {
        let answer = remote.ask(calls::why(arguments.id)).await?;
        show(remote.form, &answer.body, |style| text(&answer.value, style))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn text(reply: &WhyReply, style: TextStyle) -> String {
    let status = Tone::of_status(&reply.status).paint(style, &reply.status);
    let mut text = format!("{status}: {}\n", one_line(&reply.summary));
    for wait in &reply.waits {
        text.push_str(&waiting(wait, style));
    }
    if reply.more > 0 {
        text.push_str(&format!("and {} more\n", reply.more));
    }
    if let Some(ended) = &reply.ended {
        if ended.what != reply.summary {
            text.push_str(&format!("  {}\n", one_line(&ended.what)));
        }
        let shown = [
            ("step", ended.step.clone()),
            ("kind", ended.kind.clone()),
            ("message", ended.message.clone()),
            ("event", ended.event_id.map(|id| id.to_string())),
        ];
        for (name, value) in shown {
            if let Some(value) = value {
                text.push_str(&format!("  {} {}\n", style.faint(name), one_line(&value)));
            }
        }
    }
    text
}

fn waiting(wait: &WaitView, style: TextStyle) -> String {
    let mut text = format!("  {}  {}\n", style.warn(&wait.step), one_line(&wait.what));
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("    {} {}\n", style.faint(name), one_line(&value)));
        }
    };
    line("since", wait.since.map(time));
    line("until", wait.until.map(time));
    line("command", wait.command_id.map(|id| id.to_string()));
    line("worker", wait.worker.clone());
    line("execution", wait.child_execution_id.map(|id| id.to_string()));
    line("would move it:", Some(wait.would_move_it.clone()));
    text
}
