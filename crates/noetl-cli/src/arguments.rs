//! What can be typed after `noetl`.

mod asking;
mod audit;
mod catalog;
mod contexts;
mod executions;
mod grants;
mod isolation;
mod keeping;
mod remote;
mod run;
mod schedules;
mod worker;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use asking::{EhdbCommand, EhdbQuery, QueryArguments};
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
pub(crate) use keeping::{
    CreateTokenArguments, CredentialCommand, GetCommand, GetCredentialArguments,
    RevokeTokenArguments, SetCredentialArguments, ShownTokenArguments, SubscriptionCommand,
    SubscriptionEventsArguments, TokenCommand, TokensArguments, WorkersArguments,
};
pub(crate) use remote::{DoctorArguments, Form, RemoteArguments};
pub(crate) use run::{RunArguments, Where};
pub(crate) use schedules::{CreateScheduleArguments, ScheduleCommand};
pub(crate) use worker::WorkerArguments;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NOETL_COMMIT"), ")");

const EXIT_CODES: &str = "\
Exit codes: 0 well, 1 the execution ended badly, 2 the playbook or the call is wrong,
3 the surroundings are (database in use, port taken, disk full), 70 a defect, 130 interrupted.";

/// Runs workflows: playbooks in YAML, every transition in one log that can be replayed.
#[derive(Debug, Parser)]
#[command(name = "noetl", version = VERSION, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a playbook to its end, here and now.
    #[command(alias = "exec")]
    Run(RunArguments),
    /// Check playbooks and say what is wrong with them, where, and what would be right.
    Check(CheckArguments),
    /// Start the control plane with a worker on an embedded database.
    Dev(DevArguments),
    /// Start the control plane alone, on a database that is named; workers are other processes.
    Server(ServerArguments),
    /// Run the steps of a server's executions, as a process of its own.
    Worker(Box<WorkerArguments>),
    /// Look after the database.
    #[command(subcommand)]
    Db(DbCommand),
    /// Register documents at a server.
    #[command(subcommand)]
    Register(RegisterCommand),
    /// Work with the documents of a server.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// List the documents of a kind.
    List(ListArguments),
    /// Start a registered playbook at a server.
    Execute(Box<ExecuteArguments>),
    /// Say how an execution stands.
    Status(StatusArguments),
    /// List executions, newest first.
    Executions(ExecutionsArguments),
    /// Print the log of an execution.
    Events(EventsArguments),
    /// Say what the log of an execution tells, up to any event or time.
    Replay(ReplayArguments),
    /// Say what an execution waits for, or why it ended.
    Why(ExecutionArguments),
    /// Print what the steps of an execution printed.
    Logs(LogsArguments),
    /// Stop an execution.
    Cancel(CancelArguments),
    /// Do again what failed in an execution, in a new one that begins with its past.
    Retry(RetryArguments),
    /// Start a new execution with the workload of another.
    Rerun(RerunArguments),
    /// Start a new execution with the past of another, up to any event.
    Fork(ForkArguments),
    /// Stop executions that have run for long.
    Cleanup(CleanupArguments),
    /// Keep credentials at a server.
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Read one thing from a server.
    #[command(subcommand)]
    Get(GetCommand),
    /// Run SQL on the database of a server that keeps its data in Postgres.
    Query(QueryArguments),
    /// Read the log of a server, every id as text.
    #[command(subcommand)]
    Ehdb(EhdbCommand),
    /// Work with subscriptions.
    #[command(subcommand)]
    Subscription(SubscriptionCommand),
    /// Work with schedules.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// List the workers of a server.
    Workers(WorkersArguments),
    /// Make, list and end the tokens callers show.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Limit roles to paths, and credentials to playbooks.
    #[command(subcommand)]
    Grant(GrantCommand),
    /// Say who asked for which secret, and whether that is all that was recorded.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Say whether server, token and this machine are as they have to be.
    Doctor(DoctorArguments),
    /// Keep the addresses of several servers, and choose one.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Print a completion script for a shell.
    #[command(visible_alias = "completion")]
    Completions(CompletionsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The playbooks; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Rewrite older shapes to the newest dialect where that is certain, and keep comments. What
    /// came from stdin goes to stdout.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print what --fix would change instead of writing it.
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Decide recorded executions again with this playbook, and show the first decision of each
    /// that would differ: an execution's id, or a catalog path for its newest executions.
    #[arg(long, value_name = "PATH|ID", conflicts_with = "fix")]
    pub(crate) against: Option<String>,
    /// With --against and a path: how many executions.
    #[arg(long, default_value_t = 20, value_name = "N", requires = "against")]
    pub(crate) last: usize,
    /// With --against: where the database of `noetl dev` is kept.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// With --against: the database itself: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// The address to listen on. One that is not loopback takes no --auth open.
    #[arg(long, env = "NOETL_HOST", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port to listen on; 0 picks a free one.
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
    /// Where the database is kept.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Keep everything in this database instead: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// How many steps the worker in this process runs at a time; 0 for those who bring their own.
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
    /// Callers show an access token of this control plane.
    Token,
    /// Callers show a token of an identity provider, or an access token of this control plane.
    Oidc,
    /// Callers show no token. Everything but the internal routes is open.
    Open,
}

/// Where events are published.
#[derive(Debug, Default, Args)]
pub(crate) struct BusArguments {
    /// The NATS server commands are announced and events are published on,
    /// `nats://user:password@host:port`; several of a cluster are parted by commas. Events are
    /// published when NOETL_EVENT_STREAM_ENABLED or NOETL_OUTBOX_RELAY says how.
    #[arg(long, env = "NOETL_NATS_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) nats_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The address to listen on. One that is not loopback needs NOETL_AUTH=token or oidc.
    #[arg(long, env = "NOETL_HOST", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port to listen on; 0 picks a free one.
    #[arg(long, env = "NOETL_PORT", default_value_t = 8082)]
    pub(crate) port: u16,
    /// The database: `postgres://user:password@host:port/database`, or `sqlite://path`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    #[command(flatten)]
    pub(crate) bus: BusArguments,
    #[command(flatten, next_help_heading = "What is removed once a day, if any of these is given")]
    pub(crate) policy: PolicyArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Bring the schema up to date, and make the database when there is none.
    #[command(visible_alias = "init")]
    Migrate(DbArguments),
    /// Check the database and every log in it. Changes nothing.
    Validate(DbArguments),
    /// Say how many rows and bytes each table has.
    Stats(DbArguments),
    /// Copy an embedded database to a new file, also while a server runs on it.
    Backup(BackupArguments),
    /// Remove what is old. Nothing that can still move is touched.
    Purge(PurgeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DbArguments {
    /// Where the database is kept.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The database, instead: `sqlite://path`, or `postgres://user:password@host:port/database`.
    #[arg(long, env = "NOETL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// How to print the outcome.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The file to make. One that exists is left alone.
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
    /// Say what would go, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How long what is kept; 0 keeps it for good.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    /// Finished executions with everything they have, in days since their last event [default: 0].
    #[arg(long, env = "NOETL_EVENT_RETENTION_DAYS", value_name = "N")]
    pub(crate) event_retention_days: Option<i64>,
    /// Commands of finished executions, in days since they ended [default: 7].
    #[arg(long, env = "NOETL_COMMAND_RETENTION_DAYS", value_name = "N")]
    pub(crate) command_retention_days: Option<i64>,
    /// Worker pools, in minutes since their last heartbeat [default: 60].
    #[arg(long, env = "NOETL_RUNTIME_STALE_MINUTES", value_name = "N")]
    pub(crate) runtime_stale_minutes: Option<i64>,
    /// Published rows of the outbox, in days [default: 7].
    #[arg(long, env = "NOETL_OUTBOX_RETENTION_DAYS", value_name = "N")]
    pub(crate) outbox_retention_days: Option<i64>,
    /// Messages that subscriptions have seen, in days [default: 7].
    #[arg(long, env = "NOETL_DEDUP_RETENTION_DAYS", value_name = "N")]
    pub(crate) dedup_retention_days: Option<i64>,
    /// The audit of secrets, in days [default: 90].
    #[arg(long, env = "NOETL_AUDIT_RETENTION_DAYS", value_name = "N")]
    pub(crate) audit_retention_days: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// More slots than this only cost memory: tools that wait do so without a thread.
pub(crate) const SLOTS_MAX: i64 = 10_000;

fn slots(least: i64) -> clap::builder::RangedI64ValueParser<usize> {
    clap::builder::RangedI64ValueParser::new().range(least..=SLOTS_MAX)
}
