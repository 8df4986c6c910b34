//! What a worker process is for: steps, subscriptions, or both.

use std::sync::Arc;
use std::time::Duration;

use noetl_sources::{Options, Runtime, Sources, Tally};

use crate::arguments::WorkerArguments;
use crate::failure::{Failure, Kind};
use crate::fence::fence;
use crate::remote::Remote;
use crate::settings::number;

/// What published workers call it.
const MODE: &str = "WORKER_MODE";
const PATH: &str = "NOETL_SUBSCRIPTION_PATH";

/// How long others wait for a runtime that fell silent.
const LEASE: &str = "NOETL_LEASE_SECS";

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// It runs steps.
    Steps {
        /// And acts on every subscription that fetches its messages.
        subscriptions: bool,
    },
    /// It acts on the subscription of this path, and on nothing else.
    Subscription(String),
}

impl Mode {
    pub(super) fn read(
        arguments: &WorkerArguments,
        setting: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        if let Some(path) = &arguments.subscription {
            return Ok(Self::Subscription(path.trim().to_owned()));
        }
        let subscriptions = arguments.subscriptions;
        let mode = setting(MODE).unwrap_or_default();
        match mode.trim().to_ascii_lowercase().as_str() {
            "" | "worker" => Ok(Self::Steps { subscriptions }),
            "subscription" if subscriptions => {
                let message = format!("--subscriptions and {MODE}=subscription exclude each other");
                let hint = format!("leave the flag out, or unset {MODE}");
                Err(Failure::new(Kind::User, message).hint(hint))
            }
            "subscription" => {
                let path = setting(PATH).map(|path| path.trim().to_owned());
                let path = path.filter(|path| !path.is_empty()).ok_or_else(|| {
                    let message = format!("{MODE} is subscription, and no path is named");
                    let hint = format!("set {PATH} to the path of a subscription in the catalog");
                    Failure::new(Kind::Config, message).hint(hint)
                })?;
                Ok(Self::Subscription(path))
            }
            other => {
                let message = format!("{MODE} is worker or subscription, not '{other}'");
                Err(Failure::new(Kind::Config, message))
            }
        }
    }
}

/// Acts on every subscription of the server.
pub(super) fn act_on_all(remote: &Remote, holder: String) -> Result<Runtime, Failure> {
    let plane = Arc::new(noetl_sources::Remote::new(remote.client.clone()));
    Ok(Runtime::all(plane, Sources::standard(fence()?), options(holder)?))
}

/// Acts on one.
pub(super) fn act_on_one(
    remote: &Remote,
    holder: String,
    path: String,
    tally: Arc<Tally>,
) -> Result<Runtime, Failure> {
    let plane = Arc::new(noetl_sources::Remote::new(remote.client.clone()));
    let options = Options { tally, ..options(holder)? };
    Ok(Runtime::one(plane, Sources::standard(fence()?), options, path))
}

fn options(holder: String) -> Result<Options, Failure> {
    let usual = Options::new(holder);
    let seconds = number(LEASE, 3..=3600)?.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(Options { lease: seconds.map_or(usual.lease, Duration::from_secs), ..usual })
}
