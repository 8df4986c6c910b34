//! Arguments of `noetl run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Output, WorkloadArguments, slots};

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Playbook file; `-` reads stdin. With `--runtime distributed`, a catalog path.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    /// File with credentials for the run, under the names that playbooks use in `auth`: YAML or
    /// JSON with a `{name, type, data}` object, or with a list of them. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Vec<PathBuf>,
    /// Database file for the event log [default: in memory].
    #[arg(long, value_name = "PATH", conflicts_with = "database_url")]
    pub(crate) db: Option<PathBuf>,
    /// Database for the event log: `sqlite://path`, or
    /// `postgres://user:password@host:port/database` [default: in memory].
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Maximum number of steps to run at a time.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = slots(1))]
    pub(crate) slots: usize,
    /// Approve every approval of the playbook. Without this flag, prompt for each one on a
    /// terminal.
    #[arg(long)]
    pub(crate) approve: bool,
    /// Check the playbook and the payload, without running.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format of the outcome.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Print JSON, as --output json does.
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) json: bool,
    /// Runtime for the playbook.
    #[arg(long, short, value_enum, default_value_t = RunTarget::Auto, help_heading = "Server")]
    pub(crate) runtime: RunTarget,
    /// Version to start [default: latest].
    #[arg(long, short = 'V', value_name = "N", help_heading = "Server")]
    pub(crate) version: Option<u32>,
    /// Server URL [default: as for `noetl execute`].
    #[arg(long, value_name = "URL", visible_alias = "endpoint", help_heading = "Server")]
    pub(crate) server_url: Option<String>,
    /// Context that names the server.
    #[arg(long, value_name = "NAME", conflicts_with = "server_url", help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// Access token for the server.
    #[arg(long, value_name = "TOKEN", alias = "session-token", help_heading = "Server")]
    pub(crate) token: Option<String>,
}

impl RunArguments {
    /// Returns `true` if the outcome is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.output == Output::Json
    }
}

/// Runtime of a playbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunTarget {
    /// Currently the same as local.
    Auto,
    /// In this process, to completion.
    Local,
    /// On a server that has the playbook in its catalog, as `noetl execute` does.
    Distributed,
}
