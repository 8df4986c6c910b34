//! Reads the limits of the HTTP server from the environment, and raises the limit of open files to
//! fit.

use std::time::Duration;

use noetl_server::{Network, NetworkError, Options};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::settings::{number, setting};

/// Open files reserved for other uses than connections: databases, brokers, requests of steps, and
/// processes with their pipes.
const OTHER_FILES: u64 = 512;

/// Minimum number of connections for a server to be useful.
const CONNECTIONS_MIN: u64 = 64;

/// Returns the defaults with the limits of the environment applied.
pub(crate) fn edge(defaults: Options) -> Result<Options, CliError> {
    let count = |name: &str, default: usize| {
        let found = number(name, 1..=1_000_000)?;
        Ok(found.and_then(|number| usize::try_from(number).ok()).unwrap_or(default))
    };
    let seconds = |name: &str, default: Duration| {
        let found = number(name, 1..=3600)?.and_then(|number| u64::try_from(number).ok());
        Ok(found.map_or(default, Duration::from_secs))
    };
    let rate = |name: &str, default: Option<f64>| {
        Ok::<_, CliError>(match number(name, 0..=1_000_000)? {
            None => default,
            Some(0) => None,
            Some(number) => Some(number as f64),
        })
    };
    let min_rate = number("NOETL_BODY_MIN_RATE", 0..=1_000_000_000)?;
    let min_rate = min_rate.and_then(|number| u64::try_from(number).ok());
    Ok(Options {
        requests_max: count("NOETL_REQUESTS_MAX", defaults.requests_max)?,
        anonymous_max: count("NOETL_ANONYMOUS_REQUESTS_MAX", defaults.anonymous_max)?,
        request_timeout: seconds("NOETL_REQUEST_TIMEOUT_SECS", defaults.request_timeout)?,
        body_timeout: seconds("NOETL_BODY_TIMEOUT_SECS", defaults.body_timeout)?,
        body_min_rate: min_rate.unwrap_or(defaults.body_min_rate),
        streams_max: count("NOETL_STREAMS_MAX", defaults.streams_max)?,
        tenant_streams_max: count("NOETL_TENANT_STREAMS_MAX", defaults.tenant_streams_max)?,
        connections_max: connections(count("NOETL_CONNECTIONS_MAX", defaults.connections_max)?)?,
        rate_limit: rate("NOETL_RATE_LIMIT", defaults.rate_limit)?,
        address_rate_limit: rate("NOETL_ADDRESS_RATE_LIMIT", defaults.address_rate_limit)?,
        listener_rate_limit: rate("NOETL_LISTENER_RATE_LIMIT", defaults.listener_rate_limit)?,
        trusted_proxies: proxies()?,
        ..defaults
    })
}

/// Returns the proxies whose forwarded client addresses are trusted.
fn proxies() -> Result<Vec<Network>, CliError> {
    const PROXIES: &str = "NOETL_TRUSTED_PROXIES";
    let text = setting(PROXIES).unwrap_or_default();
    let named = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    named
        .map(|name| {
            name.parse().map_err(|error: NetworkError| {
                CliError::new(ErrorKind::Config, format!("{PROXIES}: {error}"))
            })
        })
        .collect()
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
    fn connections_fit_into_the_limit_of_open_files() {
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
