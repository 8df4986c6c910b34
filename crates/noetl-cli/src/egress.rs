//! Reads the egress policy from the environment: the addresses that steps, notifications, and
//! subscriptions may reach over HTTP.

use noetl_fence::{DefaultAccess, EgressPolicy};

use crate::error::{CliError, ErrorKind};
use crate::settings::setting;

const FENCE: &str = "NOETL_HTTP_FENCE";
const ALLOW: &str = "NOETL_HTTP_ALLOW";

/// Returns the egress policy of `NOETL_HTTP_FENCE` and `NOETL_HTTP_ALLOW`.
pub(crate) fn fence() -> Result<EgressPolicy, CliError> {
    let text = setting(FENCE).unwrap_or_default().trim().to_ascii_lowercase();
    let reach = match text.as_str() {
        "" => DefaultAccess::default(),
        text => match DefaultAccess::NAMES.iter().find(|(name, _)| *name == text) {
            Some((_, reach)) => *reach,
            None => {
                let message = format!("{FENCE} is off, metadata, private or listed, not '{text}'");
                return Err(CliError::new(ErrorKind::Config, message));
            }
        },
    };
    let listed = setting(ALLOW).unwrap_or_default();
    EgressPolicy::new(reach, &listed).map_err(|error| {
        CliError::new(ErrorKind::Config, format!("{ALLOW}: {error}"))
            .hint(format!("commas part them, as in {ALLOW}=api.internal,*.example.org,10.1.0.0/16"))
    })
}
