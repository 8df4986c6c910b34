//! Determines whether a worker process runs steps, subscriptions, or both.

use std::sync::Arc;

use noetl_config::tree::{Executions, Worker};
use noetl_sources::{MessageCounters, Options, SourceRegistry, SubscriptionRuntime};

use crate::arguments::WorkerArguments;
use crate::egress::egress_policy;
use crate::error::{CliError, ErrorKind};
use crate::remote::Remote;
use crate::settings;

/// Variables that select the mode, named as in published workers.
const MODE: &str = "WORKER_MODE";
const PATH: &str = "NOETL_SUBSCRIPTION_PATH";

/// Work that a worker process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerMode {
    /// Runs the steps of a pool.
    Steps {
        /// Whether it also runs every subscription that fetches messages from a source.
        subscriptions: bool,
    },
    /// Runs only the subscription with this catalog path.
    Subscription(String),
}

impl WorkerMode {
    pub(super) fn read(arguments: &WorkerArguments, worker: &Worker) -> Result<Self, CliError> {
        if let Some(path) = &arguments.subscription {
            return Ok(Self::Subscription(path.trim().to_owned()));
        }
        let subscriptions = arguments.subscriptions;
        match worker.mode.as_deref() {
            Some("subscription") if subscriptions => {
                let message = format!("--subscriptions and {MODE}=subscription exclude each other");
                let hint = format!("leave the flag out, or unset {MODE}");
                Err(CliError::new(ErrorKind::User, message).hint(hint))
            }
            Some("subscription") => {
                let path = worker.subscription_path.as_deref().map(str::trim);
                let path = path.filter(|path| !path.is_empty()).ok_or_else(|| {
                    let message = format!("{MODE} is subscription, and no path is named");
                    let hint = format!("set {PATH} to the path of a subscription in the catalog");
                    CliError::new(ErrorKind::Config, message).hint(hint)
                })?;
                Ok(Self::Subscription(path.to_owned()))
            }
            Some(_) | None => Ok(Self::Steps { subscriptions }),
        }
    }
}

/// Starts a runtime for every subscription of the server.
pub(super) fn act_on_all(remote: &Remote, holder: String) -> Result<SubscriptionRuntime, CliError> {
    let plane = Arc::new(noetl_sources::HttpControlPlane::new(remote.client.clone()));
    Ok(SubscriptionRuntime::all(
        plane,
        SourceRegistry::standard(egress_policy()?),
        options(holder)?,
    ))
}

/// Starts a runtime for the subscription with this catalog path.
pub(super) fn act_on_one(
    remote: &Remote,
    holder: String,
    path: String,
    tally: Arc<MessageCounters>,
) -> Result<SubscriptionRuntime, CliError> {
    let plane = Arc::new(noetl_sources::HttpControlPlane::new(remote.client.clone()));
    let options = Options { tally, ..options(holder)? };
    Ok(SubscriptionRuntime::one(plane, SourceRegistry::standard(egress_policy()?), options, path))
}

fn options(holder: String) -> Result<Options, CliError> {
    let usual = Options::new(holder);
    let executions: Executions = settings::section()?;
    Ok(Options { lease: executions.lease_secs.unwrap_or(usual.lease), ..usual })
}
