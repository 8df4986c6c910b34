//! Arguments of `noetl schedule`.

use clap::{ArgGroup, Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules with their next runs.
    List(SchedulesArguments),
    /// Show the status of a schedule.
    Get(ScheduleArguments),
    /// Create a schedule. Registering a document of kind Schedule creates one, too.
    Create(Box<CreateScheduleArguments>),
    /// Pause a schedule, so that it starts no executions.
    Pause(ScheduleArguments),
    /// Resume a paused schedule.
    Resume(ScheduleArguments),
    /// Start an execution of a schedule now.
    Run(ScheduleArguments),
    /// Delete a schedule from the server.
    Delete(ScheduleArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SchedulesArguments {
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// ID of the schedule.
    #[arg(value_name = "ID")]
    pub(crate) id: i64,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("when").required(true).args(["cron", "every", "at"]))]
pub(crate) struct CreateScheduleArguments {
    /// Catalog path of the playbook.
    pub(crate) playbook: String,
    /// Name of the schedule.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Version of the playbook [default: latest at each run].
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Cron expression of the run times, such as '0 2 * * *'.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// Time zone of the cron expression [default: UTC].
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["every", "at"])]
    pub(crate) timezone: Option<String>,
    /// Interval between runs, such as 15m.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,
    /// Time of a single run, with its UTC offset.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Policy for runs missed while no server was running: skip, one, or all [default: one].
    #[arg(long, value_name = "WORD")]
    pub(crate) missed: Option<String>,
    /// Policy while an earlier run is in progress: allow, skip, queue, or cancel_previous [default:
    /// allow].
    #[arg(long, value_name = "WORD")]
    pub(crate) overlap: Option<String>,
    /// Worker pool for the executions.
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// Create the schedule in paused state.
    #[arg(long)]
    pub(crate) paused: bool,
    /// Payload of the executions: a JSON file, or an inline JSON object.
    #[arg(long, value_name = "FILE")]
    pub(crate) payload: Option<String>,
    /// Payload value to set. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
