//! Arguments of the verbs about executions.

use clap::{Args, Subcommand};
use noetl_model::ExecutionId;

use super::RemoteArguments;

/// Values merged into a workload, in increasing precedence: `--input`, `--payload`, `--set`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArguments {
    /// Workload value to set, such as `--set who=Ada` or `--set limits.max=3`. JSON if it parses,
    /// else text; a `workload.` prefix of the key is ignored. Overrides --payload. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// JSON object to merge into the workload: inline, a file, or `-` for stdin. Overrides --input.
    #[arg(long, value_name = "JSON|FILE", visible_alias = "workload")]
    pub(crate) payload: Option<String>,
    /// JSON object to merge into the workload, with lower precedence than --payload.
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

/// Hidden subcommands of `noetl execute` that duplicate other verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum ExecuteCommand {
    /// Start a registered playbook.
    #[command(hide = true)]
    Playbook(StartArguments),
    /// Show the status of an execution.
    #[command(hide = true)]
    Status(StatusArguments),
    /// Start an execution with the workload of another.
    #[command(hide = true)]
    Rerun(RerunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StartArguments {
    /// Catalog path of the playbook.
    // `None` only if a subcommand is given instead.
    #[arg(required = true)]
    pub(crate) path: Option<String>,
    /// Version of the playbook [default: latest].
    #[arg(long, short = 'V', value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    /// Worker pool for the commands of the execution.
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Print events until the execution ends, and exit with its outcome.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutionArguments {
    /// ID of the execution.
    #[arg(value_name = "ID")]
    pub(crate) id: ExecutionId,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Print events until the execution ends.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutionsArguments {
    /// Status of the executions to list: RUNNING, COMPLETED, FAILED, or CANCELLED.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Text that the catalog path must contain.
    #[arg(long, value_name = "TEXT")]
    pub(crate) path: Option<String>,
    /// Parent whose child executions to list.
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<ExecutionId>,
    /// Maximum number of executions, up to 100 [default: 50].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Number of executions to skip.
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArguments {
    /// Sequence number after which to start.
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub(crate) after: u64,
    /// Maximum number of events [default: 500].
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub(crate) limit: Option<usize>,
    /// Print new events until the execution ends. JSON and YAML print one document per event.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Last event to include, by event ID.
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) at_event: Option<String>,
    /// Latest time to include, such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME", conflicts_with = "at_event")]
    pub(crate) at_time: Option<String>,
    /// Projection to print: execution, stage, frame, command, business_object, loop, or all.
    #[arg(long, value_name = "NAME")]
    pub(crate) projection: Option<String>,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Command whose lines to print.
    #[arg(long, value_name = "ID")]
    pub(crate) command: Option<String>,
    /// Line number after which to start.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) after: u64,
    /// Maximum number of lines [default: all stored lines].
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub(crate) limit: Option<u64>,
    /// Print new lines until the execution ends. JSON and YAML print one document per line.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// Reason recorded with the cancellation.
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Cancel all descendant executions, too.
    #[arg(long)]
    pub(crate) cascade: bool,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    /// Step to restart from, at its latest run [default: the failed steps].
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
    /// Last event to copy, by event ID or sequence number [default: latest].
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<i64>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArguments {
    /// Minimum age of the executions to cancel, in minutes since they started.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) older_than_minutes: u32,
    /// List the executions that would be cancelled, without cancelling them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
