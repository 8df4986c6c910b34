//! Command-line arguments of `noetl`. Doc comments in these modules become the `--help` text.

mod audit;
mod catalog;
mod contexts;
mod executions;
mod grants;
mod isolation;
mod query;
mod remote;
mod resources;
mod run;
mod schedules;
mod worker;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use audit::{
    AuditArguments, AuditCommand, ExportAuditArguments, SyslogAddress, VerifyAuditArguments,
};
pub(crate) use catalog::{
    CatalogCommand, DocumentsArguments, ListArguments, LoadArguments, RegisterCommand,
    ShowArguments, SourceArguments, ValidateArguments,
};
pub(crate) use contexts::{ContextCommand, ContextFields, SetContextArguments};
pub(crate) use executions::{
    CancelArguments, CleanupArguments, EventsArguments, ExecuteArguments, ExecuteCommand,
    ExecutionArguments, ExecutionsArguments, ForkArguments, LogsArguments, ReplayArguments,
    RerunArguments, RetryArguments, StartArguments, StatusArguments, WorkloadArguments,
};
pub(crate) use grants::{
    CreateGrantArguments, GrantCommand, GrantsArguments, RemoveGrantArguments,
};
pub(crate) use isolation::IsolationArguments;
pub(crate) use query::{EhdbCommand, EhdbQuery, QueryArguments};
pub(crate) use remote::{DoctorArguments, OutputFormat, RemoteArguments};
pub(crate) use resources::{
    CreateTokenArguments, CredentialCommand, GetCommand, GetCredentialArguments,
    RevokeTokenArguments, SetCredentialArguments, ShownTokenArguments, SubscriptionCommand,
    SubscriptionEventsArguments, TokenCommand, TokensArguments, WorkersArguments,
};
pub(crate) use run::{RunArguments, RunTarget};
pub(crate) use schedules::{CreateScheduleArguments, ScheduleCommand};
pub(crate) use worker::WorkerArguments;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NOETL_COMMIT"), ")");

const EXIT_CODES: &str = "\
Exit codes: 0 well, 1 the execution ended badly, 2 the playbook or the call is wrong,
3 the surroundings are (database in use, port taken, disk full), 70 a defect, 130 interrupted.";

/// Run durable workflows defined in YAML.
#[derive(Debug, Parser)]
#[command(name = "noetl", version = VERSION, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
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
    /// Manage contexts, which are named servers.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Print a completion script for a shell.
    #[command(visible_alias = "completion")]
    Completions(CompletionsArguments),
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
    /// Data directory of `noetl dev`, with --against.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Database to read with --against: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Output format of the diagnostics.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// Address to listen on. --auth open requires a loopback address.
    #[arg(long, env = "NOETL_HOST", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, env = "NOETL_PORT", default_value_t = 8082)]
    pub(crate) port: u16,
    /// Authentication of callers: `token`, which is created and stored for you on this machine;
    /// `oidc`, an identity provider; or `open`, which lets every user and program of this machine
    /// do everything.
    #[arg(
        long,
        env = "NOETL_AUTH",
        value_name = "MODE",
        default_value = "token",
        ignore_case = true,
        hide_possible_values = true,
        hide_env_values = true
    )]
    pub(crate) auth: AuthMode,
    /// Directory for the database.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Database to use instead of --data: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Maximum number of steps this process runs at a time; 0 if only separate workers run steps.
    #[arg(long, env = "NOETL_SLOTS", default_value_t = 16, value_name = "N", value_parser = slots(0))]
    pub(crate) slots: usize,
    #[command(flatten)]
    pub(crate) bus: BusArguments,
    #[command(flatten, next_help_heading = "What is removed once a day, if any of these is given")]
    pub(crate) policy: PolicyArguments,
}

/// Authentication of callers of the HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AuthMode {
    /// Callers present an access token of this control plane.
    Token,
    /// Callers present a token of an identity provider, or an access token of this control plane.
    Oidc,
    /// Callers present no token. All routes except the internal ones are open.
    Open,
}

/// Options of the message bus.
#[derive(Debug, Default, Args)]
pub(crate) struct BusArguments {
    /// NATS server to announce commands and publish events on, such as
    /// `nats://user:password@host:port`; separate the servers of a cluster with commas. Publishing
    /// events requires NOETL_EVENT_STREAM_ENABLED or NOETL_OUTBOX_RELAY.
    #[arg(long, env = "NOETL_NATS_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) nats_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// Address to listen on. An address other than loopback requires NOETL_AUTH=token or oidc.
    #[arg(long, env = "NOETL_HOST", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0 picks a free port.
    #[arg(long, env = "NOETL_PORT", default_value_t = 8082)]
    pub(crate) port: u16,
    /// Database URL: `postgres://user:password@host:port/database`, or `sqlite://path`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    #[command(flatten)]
    pub(crate) bus: BusArguments,
    #[command(flatten, next_help_heading = "What is removed once a day, if any of these is given")]
    pub(crate) policy: PolicyArguments,
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
    /// Directory of the database.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Database to use instead of --data: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
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
    pub(crate) policy: PolicyArguments,
    /// Report the data that would be deleted, without deleting it.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Retention periods. 0 retains the data forever.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    /// Days to retain finished executions with all their data, since their last event; 0 is forever
    /// [default: 0].
    #[arg(long, env = "NOETL_EVENT_RETENTION_DAYS", value_name = "N")]
    pub(crate) event_retention_days: Option<i64>,
    /// Days to retain commands of finished executions, since the commands ended; 0 is forever
    /// [default: 7].
    #[arg(long, env = "NOETL_COMMAND_RETENTION_DAYS", value_name = "N")]
    pub(crate) command_retention_days: Option<i64>,
    /// Minutes to retain worker pools, since their last heartbeat; 0 is forever [default: 60].
    #[arg(long, env = "NOETL_RUNTIME_STALE_MINUTES", value_name = "N")]
    pub(crate) runtime_stale_minutes: Option<i64>,
    /// Days to retain published outbox rows; 0 is forever [default: 7].
    #[arg(long, env = "NOETL_OUTBOX_RETENTION_DAYS", value_name = "N")]
    pub(crate) outbox_retention_days: Option<i64>,
    /// Days to remember messages of subscriptions for deduplication; 0 is forever [default: 7].
    #[arg(long, env = "NOETL_DEDUP_RETENTION_DAYS", value_name = "N")]
    pub(crate) dedup_retention_days: Option<i64>,
    /// Days to retain audit records of secrets; 0 is forever [default: 90].
    #[arg(long, env = "NOETL_AUDIT_RETENTION_DAYS", value_name = "N")]
    pub(crate) audit_retention_days: Option<i64>,
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
pub(crate) const SLOTS_MAX: i64 = 10_000;

fn slots(least: i64) -> clap::builder::RangedI64ValueParser<usize> {
    clap::builder::RangedI64ValueParser::new().range(least..=SLOTS_MAX)
}
