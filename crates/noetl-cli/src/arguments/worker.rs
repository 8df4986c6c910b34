//! Arguments of `noetl worker`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::{IsolationArguments, RemoteArguments, SLOTS_MAX};

/// Worker flags. Each flag overrides the environment variable named in its help text.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// Server URL, such as http://host:8082. [env: NOETL_SERVER_URL] [default: that of the current
    /// context, else http://127.0.0.1:8082]
    #[arg(long, visible_alias = "server-url", value_name = "URL", help_heading = "Server")]
    pub(crate) server: Option<String>,
    /// Context that names the server; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with = "server", help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// File with an access token of role worker; `-` reads stdin. [env: NOETL_TOKEN_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Server", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Access token of role worker. Prefer a file: other processes may read the arguments and the
    /// environment while the worker starts. [env: NOETL_TOKEN] [default: that of the context]
    #[arg(long, value_name = "TOKEN", help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// NATS server that announces commands, such as `nats://user:password@host:port`, so that the
    /// worker requests commands only when some are pending; separate the servers of a cluster with
    /// commas. [env: NOETL_NATS_URL] [default: none; the worker uses long polls]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) nats_url: Option<String>,
    /// Run every subscription that fetches messages from a source, in addition to steps. Workers
    /// with this flag share the subscriptions; one worker runs each at a time.
    #[arg(long, conflicts_with = "subscription", help_heading = "Subscriptions")]
    pub(crate) subscriptions: bool,
    /// Catalog path of the subscription to run, without running steps. Registers and activates it.
    /// On exit, drains and deactivates it unless another worker waits to take over. [env:
    /// NOETL_SUBSCRIPTION_PATH, if WORKER_MODE is `subscription`]
    #[arg(long, value_name = "PATH", help_heading = "Subscriptions")]
    pub(crate) subscription: Option<String>,
    /// Maximum number of steps to run at a time. [env: NOETL_WORKER_SLOTS] [default: 16]
    #[arg(long, value_name = "N", value_parser = super::slots(1))]
    pub(crate) slots: Option<usize>,
    /// Pool whose steps to run. [env: NOETL_WORKER_POOL] [default: shared]
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// Label to show in `noetl workers`. Repeatable. [env: NOETL_WORKER_LABELS, comma-separated]
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<String>,
    /// Worker name, unique among all processes. [env: NOETL_WORKER_NAME] [default: generated]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Address to serve `GET /health` and `GET /metrics` on; port 0 picks a free port. [env:
    /// NOETL_WORKER_LISTEN] [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Maximum size of a step's result, in MiB. [env: NOETL_WORKER_RESULT_MAX_MB] [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) result_max: Option<u16>,
    /// Seconds that running steps may take to finish on shutdown; unfinished commands are released.
    /// [env: NOETL_WORKER_GRACE_SECS] [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(crate) grace: Option<u64>,
    #[command(flatten)]
    pub(crate) isolation: IsolationArguments,
}

impl WorkerArguments {
    /// Accepted range of `NOETL_WORKER_SLOTS`.
    pub(crate) const SLOTS: std::ops::RangeInclusive<i64> = 1..=SLOTS_MAX;

    /// Returns the server, context, and token flags in the form shared by the client verbs.
    pub(crate) fn remote(&self) -> RemoteArguments {
        RemoteArguments {
            server_url: self.server.clone(),
            context: self.context.clone(),
            token: self.token.clone(),
            ..RemoteArguments::default()
        }
    }
}
