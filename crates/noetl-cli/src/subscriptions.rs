//! Runs subscriptions in the process of the control plane.

use std::sync::Arc;

use noetl_config::tree::Executions;
use noetl_control::ControlPlane;
use noetl_local::LocalControlPlane;
use noetl_model::Tenant;
use noetl_sources::{Options, SourceRegistry, SubscriptionRuntime};

use crate::egress::egress_policy;
use crate::error::CliError;
use crate::settings;

/// Lease holder name of a process that owns its database exclusively. All such processes share it,
/// so that the next one acquires the leases at once: no other process can still use them.
const OWNER: &str = "owner";

/// Returns the options of the subscription runtime. On a shared database, the lease holder is
/// unique to this process.
pub(crate) fn options(control: &ControlPlane) -> Result<Options, CliError> {
    let holder = match control.triggers.subscriptions.is_shared() {
        true => format!("{}-{:x}", std::process::id(), control.now().as_micros()),
        false => OWNER.to_owned(),
    };
    let usual = Options::new(holder);
    let executions: Executions = settings::section()?;
    Ok(Options { lease: executions.lease_secs.unwrap_or(usual.lease), ..usual })
}

/// Starts a runtime for every subscription that fetches messages from a source.
pub(crate) fn act_on_all(
    control: &Arc<ControlPlane>,
    options: Options,
) -> Result<SubscriptionRuntime, CliError> {
    let plane = Arc::new(LocalControlPlane::new(control.clone(), Tenant::default()));
    Ok(SubscriptionRuntime::all(plane, SourceRegistry::standard(egress_policy()?), options))
}
