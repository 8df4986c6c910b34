//! Builds the egress policy: the addresses that steps, notifications, and subscriptions may reach
//! over HTTP.

use noetl_config::tree::Egress;
use noetl_egress::{DefaultAccess, EgressPolicy};

use crate::error::{CliError, ErrorKind};
use crate::settings;

const ALLOW: &str = "NOETL_HTTP_ALLOW";

/// Returns the configured egress policy.
pub(crate) fn egress_policy() -> Result<EgressPolicy, CliError> {
    let Egress { fence, allow } = settings::section()?;
    let named = DefaultAccess::NAMES.iter().find(|(name, _)| *name == fence);
    let access = named.map_or_else(DefaultAccess::default, |(_, access)| *access);
    let listed = allow.unwrap_or_default().join(",");
    EgressPolicy::new(access, &listed).map_err(|error| {
        let name = settings::current().name_of(ALLOW);
        CliError::new(ErrorKind::Config, format!("{name}: {error}"))
            .hint(format!("commas part them, as in {ALLOW}=api.internal,*.example.org,10.1.0.0/16"))
    })
}
