//! Acting on subscriptions in the process of the control plane.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::Control;
use noetl_model::Tenant;
use noetl_sources::{Local, Options, Runtime, Sources};

use crate::failure::Failure;
use crate::fence::fence;
use crate::settings::number;

/// By what the process is known that owns its database: the next goes on at once, because there is no
/// other that could still be at it.
const OWNER: &str = "owner";

/// How a process acts on subscriptions.
pub(crate) fn options(control: &Control) -> Result<Options, Failure> {
    let holder = match control.subscriptions.is_shared() {
        true => format!("{}-{:x}", std::process::id(), control.now().as_micros()),
        false => OWNER.to_owned(),
    };
    let usual = Options::new(holder);
    let seconds = number("NOETL_LEASE_SECS", 3..=3600)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(Options { lease: seconds.map_or(usual.lease, Duration::from_secs), ..usual })
}

/// Acts on every subscription that fetches its messages.
pub(crate) fn act_on_all(control: &Arc<Control>, options: Options) -> Result<Runtime, Failure> {
    let plane = Arc::new(Local::new(control.clone(), Tenant::default()));
    Ok(Runtime::all(plane, Sources::standard(fence()?), options))
}
