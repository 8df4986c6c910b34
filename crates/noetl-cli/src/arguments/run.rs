//! What can be said about a run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Output, WorkloadArguments, slots};

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The playbook; `-` reads it from stdin. With `--runtime distributed`, its path in the catalog.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    /// Keep these credentials for the run, under the names playbooks use in `auth`: a YAML or JSON
    /// file of `{name, type, data}`, or a list of them. Can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Vec<PathBuf>,
    /// Keep the log in this database file instead of in memory.
    #[arg(long, value_name = "PATH", conflicts_with = "database_url")]
    pub(crate) db: Option<PathBuf>,
    /// Keep the log in this database instead of in memory: `sqlite://path`, or
    /// `postgres://user:password@host:port/database`.
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// How many steps run at a time.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = slots(1))]
    pub(crate) slots: usize,
    /// Give every approval the playbook asks for. Without it, and at a terminal, you are asked.
    #[arg(long)]
    pub(crate) approve: bool,
    /// Say what is wrong with the playbook and the payload, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How to print the outcome.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// The same as --output json.
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) json: bool,
    /// Where it runs.
    #[arg(long, short, value_enum, default_value_t = Where::Auto, help_heading = "Server")]
    pub(crate) runtime: Where,
    /// The version to start; the highest when left out.
    #[arg(long, short = 'V', value_name = "N", help_heading = "Server")]
    pub(crate) version: Option<u32>,
    /// The server to start it at, as `noetl execute` finds it when left out.
    #[arg(long, value_name = "URL", visible_alias = "endpoint", help_heading = "Server")]
    pub(crate) server_url: Option<String>,
    /// The server of this context.
    #[arg(long, value_name = "NAME", conflicts_with = "server_url", help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// The token to show.
    #[arg(long, value_name = "TOKEN", alias = "session-token", help_heading = "Server")]
    pub(crate) token: Option<String>,
}

impl RunArguments {
    /// Whether the outcome is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.output == Output::Json
    }
}

/// Where a playbook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Where {
    /// The same as local.
    Auto,
    /// Here, to its end.
    Local,
    /// At a server that has it in its catalog; the same as `noetl execute`.
    Distributed,
}
