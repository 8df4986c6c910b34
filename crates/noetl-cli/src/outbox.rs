//! Configures the outbox of the stores.

use noetl_store::OutboxOptions;

use crate::error::CliError;
use crate::settings::{seconds, switch};

/// Switch: write events to the outbox.
pub(crate) const OUTBOX: &str = "NOETL_OUTBOX_ENABLED";

/// Reads the outbox settings of the stores.
pub(crate) fn options() -> Result<OutboxOptions, CliError> {
    let defaults = OutboxOptions::default();
    let lease = seconds("NOETL_OUTBOX_LEASE_SECS", 1, 86_400)?;
    Ok(OutboxOptions { is_on: switch(OUTBOX)?, lease: lease.unwrap_or(defaults.lease) })
}
