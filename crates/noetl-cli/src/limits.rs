//! Applies the limits of the HTTP server, and raises the limit of open files to fit.

use noetl_config::tree::Limits;
use noetl_server::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{CliError, ErrorKind};
use crate::{output, settings};

/// Open files reserved for other uses than connections: databases, brokers, requests of steps, and
/// processes with their pipes.
const OTHER_FILES: u64 = 512;

/// Minimum number of connections for a server to be useful.
const CONNECTIONS_MIN: u64 = 64;

/// Returns the defaults with the configured limits applied.
pub(crate) fn edge(defaults: Options) -> Result<Options, CliError> {
    let limits: Limits = settings::section()?;
    let rate = |per_second: u64| (per_second > 0).then_some(per_second as f64);
    Ok(Options {
        requests_max: limits.requests_max,
        anonymous_max: limits.anonymous_requests_max,
        request_timeout: limits.request_timeout_secs,
        body_timeout: limits.body_timeout_secs,
        body_min_rate: limits.body_min_rate,
        streams_max: limits.streams_max,
        tenant_streams_max: limits.tenant_streams_max,
        connections_max: connections(limits.connections_max)?,
        rate_limit: rate(limits.rate_limit),
        address_rate_limit: rate(limits.address_rate_limit),
        listener_rate_limit: rate(limits.listener_rate_limit),
        ..defaults
    })
}

/// Returns the maximum number of connections, after raising the process's limit of open files as
/// far as its hard limit allows.
fn connections(wanted: usize) -> Result<usize, CliError> {
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    let raised = limit.maximum.map_or(needed, |most| needed.min(most));
    let mut files = limit.current;
    if files.is_some_and(|files| files < raised)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok()
    {
        files = Some(raised);
    }
    let room = room(files, wanted)?;
    if room < wanted {
        output::note(&format!(
            "  files     {} may be open, so {room} connections are taken at a time, not {wanted} \
             (ulimit -n)",
            files.unwrap_or(u64::MAX)
        ));
    }
    Ok(room)
}

/// Returns the number of wanted connections that fit into a limit of open files.
fn room(files: Option<u64>, wanted: usize) -> Result<usize, CliError> {
    let Some(files) = files else { return Ok(wanted) };
    let room = files.saturating_sub(OTHER_FILES);
    if room < CONNECTIONS_MIN {
        let message = format!(
            "this process may open {files} files, and needs {} at least",
            OTHER_FILES + CONNECTIONS_MIN
        );
        let hint = format!("raise the limit, as in `ulimit -n {}`", OTHER_FILES + 16_384);
        return Err(CliError::new(ErrorKind::Config, message).hint(hint));
    }
    Ok(usize::try_from(room).unwrap_or(usize::MAX).min(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_limit_fits_the_open_file_limit() {
        assert_eq!(room(None, 16_384).ok(), Some(16_384));
        assert_eq!(room(Some(1 << 20), 16_384).ok(), Some(16_384));
        assert_eq!(room(Some(1024), 16_384).ok(), Some(512));
        assert_eq!(room(Some(576), 16_384).ok(), Some(64));
        for few in [0, 100, 575] {
            let failure = room(Some(few), 16_384).expect_err("too few");
            assert!(failure.text().contains("needs 576 at least"), "{}", failure.text());
        }
    }
}
