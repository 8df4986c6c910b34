//! `noetl run --runtime distributed`: starts a playbook that is registered on a server.

use std::process::ExitCode;

use crate::arguments::{Flags, RemoteArguments, RunArguments, StartArguments};
use crate::commands::start;
use crate::error::{CliError, ErrorKind};

/// Starts the playbook and returns without waiting for it. Rejects flags for local runs.
pub(super) fn start(arguments: RunArguments) -> Result<ExitCode, CliError> {
    let here = [
        ("--credentials", !arguments.credentials.is_empty()),
        ("--db", arguments.db.is_some()),
        ("--database-url", arguments.database_url.is_some()),
        ("--approve", arguments.approve),
        ("--dry-run", arguments.dry_run),
    ];
    refuse(&here, "is for runs here, not for --runtime distributed")?;
    let Some(path) = arguments.file.to_str() else {
        return Err(CliError::new(ErrorKind::User, "the path of a playbook is UTF-8 text"));
    };
    if arguments.file.is_file() {
        let message = format!("{path} is a file, and a server runs what is registered");
        let hint =
            format!("register it with `noetl register playbook -f {path}`, then name its path");
        return Err(CliError::new(ErrorKind::User, message).hint(hint));
    }
    let json = arguments.is_json();
    start::execute(&StartArguments {
        path: Some(path.to_owned()),
        version: arguments.version,
        workload: arguments.workload,
        pool: None,
        follow: false,
        remote: RemoteArguments {
            flags: Flags::with_values([
                ("client.server_url", arguments.server_url.as_deref()),
                ("client.token", arguments.token.as_deref()),
            ]),
            context: arguments.context,
            json,
            ..RemoteArguments::default()
        },
    })
}

/// Rejects flags for `--runtime distributed` in a local run.
pub(super) fn not_meant(arguments: &RunArguments) -> Result<(), CliError> {
    let there = [
        ("--version", arguments.version.is_some()),
        ("--server-url", arguments.server_url.is_some()),
        ("--context", arguments.context.is_some()),
        ("--token", arguments.token.is_some()),
    ];
    refuse(&there, "is for --runtime distributed, and this runs here")
}

fn refuse(flags: &[(&str, bool)], why: &str) -> Result<(), CliError> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(CliError::new(ErrorKind::User, format!("{flag} {why}"))),
        None => Ok(()),
    }
}
