//! `noetl subscription`: manages subscriptions of a server.

use std::process::ExitCode;

use noetl_api::events::EventView;
use noetl_api::subscriptions::SubscriptionStatus;
use noetl_api::{ApiCall, calls};
use noetl_model::Value;

use super::follow;
use crate::arguments::{RemoteArguments, SubscriptionCommand, SubscriptionEventsArguments};
use crate::error::CliError;
use crate::output;
use crate::output::answers::show;
use crate::output::style::{self, TextStyle};
use crate::output::table::{Table, TableCell, fields};
use crate::remote;

pub(crate) fn main(command: &SubscriptionCommand) -> Result<ExitCode, CliError> {
    use SubscriptionCommand::{
        Activate, Deactivate, Drain, Events, Get, List, Pause, Register, Resume,
    };
    let (of, action) = match command {
        Register(of) => return one(&of.remote, calls::subscribe(&of.path)),
        List(of) => return list(&of.remote),
        Get(of) => return one(&of.remote, calls::subscription(of.id)),
        Events(of) => return events(of),
        Activate(of) => (of, "activate"),
        Pause(of) => (of, "pause"),
        Resume(of) => (of, "resume"),
        Drain(of) => (of, "drain"),
        Deactivate(of) => (of, "deactivate"),
    };
    one(&of.remote, calls::move_subscription(of.id, action))
}

fn one(
    arguments: &RemoteArguments,
    call: ApiCall<SubscriptionStatus>,
) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(call).await?;
        let status = &answer.value;
        show(remote.form, &answer.body, |style| {
            let shown = [
                ("subscription", TableCell::new(status.subscription_id)),
                ("path", TableCell::new(&status.path)),
                ("state", TableCell::status(&status.state)),
                ("last event", TableCell::new(&status.last_event_type)),
                ("changed", TableCell::maybe(status.updated_at.as_ref())),
            ];
            fields(&shown, style)
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

fn events(arguments: &SubscriptionEventsArguments) -> Result<ExitCode, CliError> {
    let SubscriptionEventsArguments { after, limit, of } = arguments;
    remote::run(&of.remote, async |remote| {
        let answer = remote.ask(calls::subscription_events(of.id, *after, *limit)).await?;
        let reply = &answer.value;
        show(remote.form, &answer.body, |style| {
            reply.events.iter().map(|event| event_lines(event, style)).collect()
        })?;
        if reply.has_more {
            output::note(&format!("there is more: go on with --after {}", reply.next_after));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Formats an event, followed by its reason on a second line if it has one.
fn event_lines(event: &EventView, style: TextStyle) -> String {
    let line = follow::line(event, style);
    let payload = event.result.as_ref().map(|result| serde_json::from_str::<Value>(result.get()));
    let payload = payload.and_then(Result::ok).unwrap_or_default();
    match payload.pointer("/context/reason").and_then(Value::as_str) {
        Some(reason) => format!("{line}       {}\n", style::one_line(reason)),
        None => line,
    }
}

fn list(arguments: &RemoteArguments) -> Result<ExitCode, CliError> {
    remote::run(arguments, async |remote| {
        let answer = remote.ask(calls::subscriptions()).await?;
        show(remote.form, &answer.body, |style| {
            let mut table = Table::new(["ID", "STATE", "PATH", "CHANGED"]);
            for status in &answer.value.subscriptions {
                table.row([
                    TableCell::new(status.subscription_id),
                    TableCell::status(&status.state),
                    TableCell::new(&status.path),
                    TableCell::maybe(status.updated_at.as_ref()),
                ]);
            }
            table.render(style, "no subscriptions")
        })?;
        Ok(ExitCode::SUCCESS)
    })
}
