//! What can be said about schedules.

use clap::{ArgGroup, Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules, with their next runs.
    List(SchedulesArguments),
    /// Say how a schedule stands.
    Get(ScheduleArguments),
    /// Make a schedule. A document of kind Schedule that is registered makes one too.
    Create(Box<CreateScheduleArguments>),
    /// Let a schedule rest.
    Pause(ScheduleArguments),
    /// Let a schedule run again.
    Resume(ScheduleArguments),
    /// Start what a schedule starts, now.
    Run(ScheduleArguments),
    /// Delete a schedule.
    Delete(ScheduleArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SchedulesArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// The schedule.
    #[arg(value_name = "ID")]
    pub(crate) id: i64,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("when").required(true).args(["cron", "every", "at"]))]
pub(crate) struct CreateScheduleArguments {
    /// The playbook's path in the catalog.
    pub(crate) playbook: String,
    /// What the schedule is called.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The playbook's version [default: the newest at each run].
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Run at these times, as '0 2 * * *'.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// Whose clocks a cron expression is about [default: UTC].
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["every", "at"])]
    pub(crate) timezone: Option<String>,
    /// Run this often, as 15m.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,
    /// Run once, at this time with its offset.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// What happens to runs nobody was there for: skip, one or all [default: one].
    #[arg(long, value_name = "WORD")]
    pub(crate) missed: Option<String>,
    /// What happens while an earlier run still runs: allow, skip, queue or cancel_previous
    /// [default: allow].
    #[arg(long, value_name = "WORD")]
    pub(crate) overlap: Option<String>,
    /// Which pool of workers runs it.
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// Make it without letting it run yet.
    #[arg(long)]
    pub(crate) paused: bool,
    /// What executions are started with: a file, or the object itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) payload: Option<String>,
    /// Set one value of it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
