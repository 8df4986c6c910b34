//! What can be asked of a server's database and of its log.

use clap::{Args, Subcommand};

use super::{ExecutionArguments, Form, RemoteArguments};

#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// The statement.
    pub(crate) sql: String,
    /// The schema its names are looked for in.
    #[arg(long, short, value_name = "NAME", default_value = "noetl")]
    pub(crate) schema: String,
    /// The same as --output.
    #[arg(long, short, value_enum, conflicts_with_all = ["output", "json"])]
    pub(crate) format: Option<Form>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

impl QueryArguments {
    /// How to print the answer.
    pub(crate) fn form(&self) -> Form {
        self.format.unwrap_or_else(|| self.remote.form())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum EhdbCommand {
    /// Read executions and events.
    #[command(subcommand)]
    Query(EhdbQuery),
}

#[derive(Debug, Subcommand)]
pub(crate) enum EhdbQuery {
    /// List executions.
    Executions(EhdbExecutionsArguments),
    /// Say how an execution stands.
    Execution(ExecutionArguments),
    /// List events of an execution, oldest first.
    Events(EhdbEventsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct EhdbExecutionsArguments {
    /// Only those that are RUNNING, COMPLETED, FAILED or CANCELLED.
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// At most so many, up to 1000 [default: 100].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// After so many.
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<u64>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EhdbEventsArguments {
    /// At most so many, up to 1000 [default: 100].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// After this event.
    #[arg(long, value_name = "EVENT_ID")]
    pub(crate) after: Option<i64>,
    #[command(flatten)]
    pub(crate) of: ExecutionArguments,
}
