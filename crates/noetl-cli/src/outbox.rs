//! Settings of the outbox, which publishers and databases share.

use noetl_config::tree::Bus;
use noetl_store::OutboxOptions;

use crate::error::CliError;
use crate::settings;

/// Switch: write an outbox row for each event.
pub(crate) const OUTBOX: &str = "NOETL_OUTBOX_ENABLED";

/// Returns the outbox settings of the stores.
pub(crate) fn options() -> Result<OutboxOptions, CliError> {
    let bus: Bus = settings::section()?;
    Ok(OutboxOptions { is_on: bus.outbox_enabled, lease: bus.outbox_lease_secs })
}
