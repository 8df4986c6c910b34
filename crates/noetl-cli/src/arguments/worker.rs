//! What a worker process is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::{IsolationArguments, RemoteArguments, SLOTS_MAX};

/// Flags win over the variables of the environment that are named beside them.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The server to work for, as http://host:8082. Else NOETL_SERVER_URL, else the current
    /// context, else http://127.0.0.1:8082.
    #[arg(long, visible_alias = "server-url", value_name = "URL", help_heading = "Server")]
    pub(crate) server: Option<String>,
    /// The server of this context; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with = "server", help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// File that holds the token to show, of role worker; `-` reads stdin. Else NOETL_TOKEN_FILE.
    #[arg(long, value_name = "FILE", help_heading = "Server", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Token to show, of role worker. Else NOETL_TOKEN, or the one of the context. A file keeps it
    /// out of the arguments and the environment, which other processes may read while the worker
    /// starts.
    #[arg(long, value_name = "TOKEN", help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// The NATS server on which commands are announced, `nats://user:password@host:port`, so that the
    /// worker asks when there is something; several of a cluster are parted by commas. Else
    /// NOETL_NATS_URL [default: none, the server is asked and holds the call].
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) nats_url: Option<String>,
    /// Acts on subscriptions too: on every one that fetches its messages from a source. Several such
    /// workers share them, one acting on each at a time.
    #[arg(long, conflicts_with = "subscription", help_heading = "Subscriptions")]
    pub(crate) subscriptions: bool,
    /// Acts on the subscription of this path and runs no steps: registers and activates it, and
    /// drains and deactivates it at its end unless another waits to take over. Else
    /// NOETL_SUBSCRIPTION_PATH where WORKER_MODE is `subscription`.
    #[arg(long, value_name = "PATH", help_heading = "Subscriptions")]
    pub(crate) subscription: Option<String>,
    /// How many steps run at a time. Else NOETL_WORKER_SLOTS [default: 16].
    #[arg(long, value_name = "N", value_parser = super::slots(1))]
    pub(crate) slots: Option<usize>,
    /// The pool whose steps it takes. Else NOETL_WORKER_POOL [default: shared].
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// What the worker says of itself, to be seen in the list of workers. Can be given several
    /// times. Besides NOETL_WORKER_LABELS, where they are parted by commas.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<String>,
    /// Its name, which no other process has. Else NOETL_WORKER_NAME [default: one of its own].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where it answers `GET /health` and `GET /metrics`; port 0 picks a free one. Else
    /// NOETL_WORKER_LISTEN [default: nowhere].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// How many mebibytes the result of a step may have. Else NOETL_WORKER_RESULT_MAX_MB
    /// [default: 64].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) result_max: Option<u16>,
    /// How many seconds running steps may take to end when it is told to stop; what is left is given
    /// back. Else NOETL_WORKER_GRACE_SECS [default: 30].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(crate) grace: Option<u64>,
    #[command(flatten)]
    pub(crate) isolation: IsolationArguments,
}

impl WorkerArguments {
    /// The most slots, for the variable.
    pub(crate) const SLOTS: std::ops::RangeInclusive<i64> = 1..=SLOTS_MAX;

    /// Which server is meant.
    pub(crate) fn remote(&self) -> RemoteArguments {
        RemoteArguments {
            server_url: self.server.clone(),
            context: self.context.clone(),
            token: self.token.clone(),
            ..RemoteArguments::default()
        }
    }
}
