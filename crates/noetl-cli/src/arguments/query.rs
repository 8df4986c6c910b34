//! Arguments of `noetl query` and `noetl ehdb`.

use clap::{Args, Subcommand};

use super::{ExecutionArguments, RemoteArguments};
use crate::output::OutputFormat;

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// SQL statement to run.
    pub(crate) sql: String,
    /// Schema in which to resolve unqualified names.
    #[arg(long, short, value_name = "NAME", default_value = "noetl")]
    pub(crate) schema: String,
    /// Output format, as for --output.
    #[arg(long, short, value_enum, conflicts_with_all = ["output", "json"])]
    pub(crate) format: Option<OutputFormat>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

impl QueryArguments {
    /// Returns the output format: `--format`, else `--output` or `--json`.
    pub(crate) fn form(&self) -> OutputFormat {
        self.format.unwrap_or_else(|| self.remote.form())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum EhdbCommand {
    /// Query executions and events.
    #[command(subcommand)]
    Query(EhdbQuery),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EhdbQuery {
    /// List executions, newest first.
    Executions(EhdbExecutionsArguments),
    /// Show the status of an execution.
    Execution(ExecutionArguments),
    /// List events of an execution, oldest first.
    Events(EhdbEventsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct EhdbExecutionsArguments {
    /// Status of the executions to list: RUNNING, COMPLETED, FAILED, or CANCELLED.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Maximum number of executions, up to 1,000 [default: 100].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Number of executions to skip.
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EhdbEventsArguments {
    /// Maximum number of events, up to 1,000 [default: 100].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Event ID after which to start.
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) after: Option<i64>,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}
