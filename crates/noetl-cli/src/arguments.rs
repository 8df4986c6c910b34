//! Command-line arguments of `noetl`. Doc comments in these modules become the `--help` text.

mod audit;
mod catalog;
mod config;
mod contexts;
mod executions;
mod flags;
mod grants;
mod groups;
mod query;
mod remote;
mod resources;
mod run;
mod schedules;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use audit::{
    AuditArguments, AuditCommand, ExportAuditArguments, SyslogAddress, VerifyAuditArguments,
};
pub(crate) use catalog::{
    CatalogCommand, DocumentsArguments, ListArguments, LoadArguments, RegisterCommand,
    ShowArguments, SourceArguments, ValidateArguments,
};
pub(crate) use config::{CheckConfigArguments, ConfigCommand, ShowConfigArguments};
pub(crate) use contexts::{ContextCommand, ContextFields, SetContextArguments};
pub(crate) use executions::{
    CancelArguments, CleanupArguments, EventsArguments, ExecuteArguments, ExecuteCommand,
    ExecutionArguments, ExecutionsArguments, ForkArguments, LogsArguments, ReplayArguments,
    RerunArguments, RetryArguments, StartArguments, StatusArguments, WorkloadArguments,
};
pub(crate) use flags::Flags;
pub(crate) use grants::{
    CreateGrantArguments, GrantCommand, GrantsArguments, RemoveGrantArguments,
};
pub(crate) use groups::{
    AuditRetentionFlags, ClientFlags, DataFlags, DatabaseFlags, DevFlags, RetentionFlags,
    ServerFlags, StepFlags, WorkerFlags,
};
pub(crate) use query::{EhdbCommand, EhdbQuery, QueryArguments};
pub(crate) use remote::{DoctorArguments, RemoteArguments};
pub(crate) use resources::{
    CreateTokenArguments, CredentialCommand, GetCommand, GetCredentialArguments,
    RevokeTokenArguments, SetCredentialArguments, ShownTokenArguments, SubscriptionCommand,
    SubscriptionEventsArguments, TokenCommand, TokensArguments, WorkersArguments,
};
pub(crate) use run::{RunArguments, RunTarget};
pub(crate) use schedules::{CreateScheduleArguments, ScheduleCommand};
pub(crate) use worker::WorkerArguments;

use crate::settings::UnreadableFiles;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NOETL_COMMIT"), ")");

const EXIT_CODES: &str = "\
Exit codes: 0 well, 1 the execution ended badly, 2 the playbook or the call is wrong,
3 the surroundings are (database in use, port taken, disk full), 70 a defect, 130 interrupted.";

/// Run durable workflows defined in YAML.
#[derive(Debug, Parser)]
#[command(name = "noetl", version = VERSION, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Configuration file, instead of noetl.toml in the working directory and the files of the user
    /// and of this machine [env: NOETL_CONFIG]
    #[arg(long, global = true, value_name = "FILE", display_order = 900)]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a playbook locally to completion.
    #[command(alias = "exec")]
    Run(RunArguments),
    /// Check playbooks and report errors with location and fix.
    Check(CheckArguments),
    /// Start the control plane with a worker on an embedded database.
    Dev(DevArguments),
    /// Start a server without a worker.
    Server(ServerArguments),
    /// Start a worker that runs steps for a server.
    Worker(Box<WorkerArguments>),
    /// Inspect, back up, and purge the database.
    #[command(subcommand)]
    Db(DbCommand),
    /// Register documents on a server.
    #[command(subcommand)]
    Register(RegisterCommand),
    /// Manage the documents of a server.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// List the documents of a kind.
    List(ListArguments),
    /// Start a registered playbook on a server.
    Execute(Box<ExecuteArguments>),
    /// Show the status of an execution.
    Status(StatusArguments),
    /// List executions, newest first.
    Executions(ExecutionsArguments),
    /// Print the events of an execution.
    Events(EventsArguments),
    /// Show execution state at any event or time.
    Replay(ReplayArguments),
    /// Explain what an execution waits for, or why it ended.
    Why(ExecutionArguments),
    /// Print the step logs of an execution.
    Logs(LogsArguments),
    /// Cancel a running execution.
    Cancel(CancelArguments),
    /// Retry the failed steps of an execution in a new execution that copies its earlier events.
    Retry(RetryArguments),
    /// Start an execution with the workload of another.
    Rerun(RerunArguments),
    /// Start an execution from any event of another.
    Fork(ForkArguments),
    /// Cancel executions that have run for a long time.
    Cleanup(CleanupArguments),
    /// Manage credentials on a server.
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Print one object of a server.
    #[command(subcommand)]
    Get(GetCommand),
    /// Run SQL on the Postgres database of a server.
    Query(QueryArguments),
    /// Query executions and events of a server, with every ID as text.
    #[command(subcommand)]
    Ehdb(EhdbCommand),
    /// Manage subscriptions of a server.
    #[command(subcommand)]
    Subscription(SubscriptionCommand),
    /// Manage schedules of a server.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// List the workers of a server.
    Workers(WorkersArguments),
    /// Manage access tokens of a server.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Restrict roles to paths, and credentials to playbooks.
    #[command(subcommand)]
    Grant(GrantCommand),
    /// Inspect, export, and verify the audit of secrets.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check the server, the access token, and this machine.
    Doctor(DoctorArguments),
    /// Show and check the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Manage contexts, which are named servers.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Print a completion script for a shell.
    #[command(visible_alias = "completion")]
    Completions(CompletionsArguments),
}

impl Command {
    /// Returns `true` if the verb uses settings, so that a wrong file stops it.
    pub(crate) fn uses_settings(&self) -> bool {
        match self {
            Self::Config(_) | Self::Context(_) | Self::Completions(_) => false,
            Self::Check(arguments) => arguments.against.is_some(),
            _ => true,
        }
    }

    /// Returns whether the verb starts without a configuration file that it must not read.
    pub(crate) fn unreadable_files(&self) -> UnreadableFiles {
        match self {
            Self::Dev(_) | Self::Server(_) | Self::Worker(_) => UnreadableFiles::Rejected,
            _ => UnreadableFiles::Ignored,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Playbooks to check; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Rewrite older syntax to the current dialect where the rewrite is unambiguous. Keeps
    /// comments. A document from stdin is printed to stdout.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the changes that --fix would make instead of writing them.
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Execution ID, or a catalog path for its newest executions. Replays each execution with this
    /// playbook and shows the first decision that differs from the recorded one.
    #[arg(long, value_name = "PATH|ID", conflicts_with = "fix")]
    pub(crate) against: Option<String>,
    /// Number of executions to replay, with --against and a path.
    #[arg(long, default_value_t = 20, value_name = "N", requires = "against")]
    pub(crate) last: usize,
    #[command(flatten)]
    pub(crate) database: Flags<DatabaseFlags>,
    /// Output format of the diagnostics.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DevFlags>,
    #[command(flatten, next_help_heading = "What is removed once a day, if any of these is given")]
    pub(crate) retention: Flags<RetentionFlags>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<ServerFlags>,
    #[command(flatten, next_help_heading = "What is removed once a day, if any of these is given")]
    pub(crate) retention: Flags<RetentionFlags>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Create the database if it doesn't exist, and migrate its schema to the latest version.
    #[command(visible_alias = "init")]
    Migrate(DbArguments),
    /// Check the database and every event log in it. Read-only.
    Validate(DbArguments),
    /// Show the number of rows and bytes of each table.
    Stats(DbArguments),
    /// Copy an embedded database to a new file. Safe while a server uses the database.
    Backup(BackupArguments),
    /// Delete old data by retention policy. Never touches unfinished executions.
    Purge(PurgeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DbArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DatabaseFlags>,
    /// Output format of the outcome.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// File to create. An existing file is never overwritten.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) db: DbArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    #[command(flatten)]
    pub(crate) db: DbArguments,
    #[command(flatten)]
    pub(crate) retention: Flags<RetentionFlags>,
    /// Report the data that would be deleted, without deleting it.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete commands for.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Plain text for people.
    Text,
    /// JSON document for programs.
    Json,
}

/// Upper limit of slots. More would only cost memory: tools that wait do so without a thread.
const SLOTS_MAX: i64 = 10_000;

fn slots(least: i64) -> clap::builder::RangedI64ValueParser<usize> {
    clap::builder::RangedI64ValueParser::new().range(least..=SLOTS_MAX)
}
