//! What can be said about executions.

use clap::{Args, Subcommand};
use noetl_model::ExecutionId;

use super::RemoteArguments;

/// What is laid over a workload.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArguments {
    /// Set a workload value: `--set who=Ada`, `--set limits.max=3`. What reads as JSON is JSON,
    /// anything else is text; `workload.` before a key is left out. Wins over --payload.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A JSON object laid over the workload: itself, a file, or `-` for stdin. Wins over --input.
    #[arg(long, value_name = "JSON|FILE", visible_alias = "workload")]
    pub(crate) payload: Option<String>,
    /// The same, below --payload.
    #[arg(long, short, value_name = "JSON|FILE")]
    pub(crate) input: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "noetl execute [OPTIONS] <PATH>")]
pub(crate) struct ExecuteArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ExecuteCommand>,
    #[command(flatten)]
    pub(crate) start: StartArguments,
}

/// Names that other verbs have here, too.
#[derive(Debug, Subcommand)]
pub(crate) enum ExecuteCommand {
    /// Start a registered playbook.
    #[command(hide = true)]
    Playbook(StartArguments),
    /// Say how an execution stands.
    #[command(hide = true)]
    Status(StatusArguments),
    /// Start a new execution with the workload of another.
    #[command(hide = true)]
    Rerun(RerunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StartArguments {
    /// The playbook's path in the catalog.
    // Never missing, unless a verb stands in its place.
    #[arg(required = true)]
    pub(crate) path: Option<String>,
    /// Its version; the highest when left out.
    #[arg(long, short = 'V', value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    /// Which workers its commands go to.
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Print its events until it is over, and end as it does.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutionArguments {
    /// The execution.
    #[arg(value_name = "ID")]
    pub(crate) id: ExecutionId,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print its events until it is over.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutionsArguments {
    /// Only those that are RUNNING, COMPLETED, FAILED or CANCELLED.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only those with this in their path.
    #[arg(long, value_name = "TEXT")]
    pub(crate) path: Option<String>,
    /// Only those that this execution started.
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<ExecutionId>,
    /// At most so many, up to 100 [default: 50].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// After so many.
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// After this place in the log.
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub(crate) after: u64,
    /// At most so many [default: 500].
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub(crate) limit: Option<usize>,
    /// Go on until the execution is over. As JSON or YAML, one document per event.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Up to this event, itself included.
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) at_event: Option<String>,
    /// Up to this time, as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME", conflicts_with = "at_event")]
    pub(crate) at_time: Option<String>,
    /// execution, stage, frame, command, business_object, loop or all.
    #[arg(long, value_name = "NAME")]
    pub(crate) projection: Option<String>,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Only what this command printed.
    #[arg(long, value_name = "ID")]
    pub(crate) command: Option<String>,
    /// After this line.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) after: u64,
    /// At most so many; without it, all that are kept.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub(crate) limit: Option<u64>,
    /// Go on until the execution is over. As JSON or YAML, one document per line.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// Why.
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Stop everything below it, too.
    #[arg(long)]
    pub(crate) cascade: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    /// The step to go back to, as it was entered last; what failed when left out.
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RerunArguments {
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArguments {
    /// The last event to take over, by its id or its place in the log; the newest when left out.
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArguments {
    /// Those that began so many minutes ago, or earlier.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) older_than_minutes: u32,
    /// Say what would be stopped, and stop nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
