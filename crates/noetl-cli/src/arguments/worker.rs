//! Arguments of `noetl worker`.

use clap::Args;

use super::{Flags, StepFlags, WorkerFlags};

#[derive(Debug, Default, Args)]
pub(crate) struct WorkerArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<WorkerFlags>,
    /// Context that names the server; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with = "client.server_url")]
    #[arg(help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// Run every subscription that fetches messages from a source, in addition to steps. Workers
    /// with this flag share the subscriptions; one worker runs each at a time.
    #[arg(long, conflicts_with = "subscription", help_heading = "Subscriptions")]
    pub(crate) subscriptions: bool,
    /// Catalog path of the subscription to run, without running steps. Registers and activates it.
    /// On exit, drains and deactivates it unless another worker waits to take over. [env:
    /// NOETL_SUBSCRIPTION_PATH, if WORKER_MODE is `subscription`]
    #[arg(long, value_name = "PATH", help_heading = "Subscriptions")]
    pub(crate) subscription: Option<String>,
    #[command(flatten, next_help_heading = "Isolation of steps")]
    pub(crate) steps: Flags<StepFlags>,
}
