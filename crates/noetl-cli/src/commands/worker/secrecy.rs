//! Protects the worker's token from the steps it runs.
//!
//! Programs of steps run as the worker's user unless isolation is configured otherwise, and that
//! user may read `/proc/<pid>/environ` and `/proc/<pid>/cmdline` of the worker. A running process
//! can change neither. A worker that finds a secret there therefore re-executes itself without it
//! and passes the token through stdin. Until then, the secret is visible for some milliseconds,
//! before any step runs. A token in a file is never visible.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use noetl_config::tree::{Client, Worker};
use noetl_config::{Origin, Secret, Settings};

use crate::arguments::WorkerArguments;
use crate::error::{CliError, ErrorKind};
use crate::settings;

/// Settings with secrets: the worker's token, and those of servers that a worker doesn't need.
const SECRETS: [&str; 3] = ["client.token", "server.internal_api_token", "secrets.encryption_key"];

const TOKEN_FILE: &str = "NOETL_TOKEN_FILE";

/// Maximum size of a token, in bytes. Tokens of identity providers have a few thousand.
const TOKEN_MAX: u64 = 64 << 10;

/// Replaces this process with one that has no secrets in its arguments and environment. Returns
/// `Ok` only if there are no secrets to remove.
pub(super) fn leave_environment(
    arguments: &WorkerArguments,
    layers: &Settings,
) -> Result<(), CliError> {
    let secrets = settings::variables_of(&SECRETS);
    let has_flag = arguments.flags.has("client.token");
    if !has_flag && !secrets.iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(());
    }
    let worker: Worker = settings::decode(layers)?;
    let token = match layers.origin_of("client.token") {
        // The new process reads the file of the token, and inherits stdin for that.
        _ if worker.token_file.is_some() && !has_flag => None,
        // The new process reads the configuration file, too.
        Origin::Default | Origin::File(_) => None,
        Origin::Flag(_) | Origin::Variable(_) => settings::decode::<Client>(layers)?.token,
    };
    let program = std::env::current_exe().map_err(|error| restart_failed(&error))?;
    let mut own_arguments = without_token(std::env::args_os());
    let mut again = Command::new(program);
    if let Some(name) = own_arguments.next() {
        again.arg0(name);
    }
    again.args(own_arguments);
    for name in secrets {
        again.env_remove(name);
    }
    if let Some(token) = token.as_ref().map(Secret::expose) {
        let (reader, mut writer) = std::io::pipe().map_err(|error| restart_failed(&error))?;
        // A pipe buffers this much without a reader, and nothing reads it before `exec`.
        if token.len() as u64 > TOKEN_MAX / 2 {
            return Err(CliError::new(ErrorKind::User, "the token is too long"));
        }
        writer.write_all(token.as_bytes()).map_err(|error| restart_failed(&error))?;
        again.args(["--token-file", "-"]).env_remove(TOKEN_FILE).stdin(Stdio::from(reader));
    }
    Err(restart_failed(&again.exec()))
}

/// Removes `--token` and its value from the arguments.
fn without_token(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut is_value = false;
    arguments.filter(move |argument| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        is_value = argument == "--token";
        !is_value && !argument.as_encoded_bytes().starts_with(b"--token=")
    })
}

/// Returns the token in a file, or `None` if there is no file.
pub(super) fn token_in_file(path: Option<&Path>) -> Result<Option<String>, CliError> {
    let Some(path) = path else { return Ok(None) };
    let mut text = String::new();
    let read = match path.as_os_str() == OsStr::new("-") {
        true => std::io::stdin().lock().take(TOKEN_MAX).read_to_string(&mut text),
        false => {
            let opened = std::fs::File::open(path);
            opened.and_then(|file| file.take(TOKEN_MAX).read_to_string(&mut text))
        }
    };
    let about = format!("could not read the token from {}", path.display());
    read.map_err(|error| CliError::from_error(ErrorKind::Config, &error).about(&about))?;
    match text.trim() {
        "" => {
            let message = format!("{}: there is no token in it", path.display());
            Err(CliError::new(ErrorKind::Config, message)
                .hint("an admin makes one with `noetl token create --role worker --file FILE`"))
        }
        token => Ok(Some(token.to_owned())),
    }
}

/// Removes blanks around a path, which a variable may contain.
pub(super) fn trimmed(path: PathBuf) -> PathBuf {
    match path.to_str() {
        Some(text) => PathBuf::from(text.trim()),
        None => path,
    }
}

fn restart_failed(error: &std::io::Error) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
        .about("could not start over without the token in the environment")
        .hint("give the token with --token-file instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_removed_from_the_arguments_in_either_form() {
        let left = |arguments: &[&str]| -> Vec<OsString> {
            without_token(arguments.iter().map(OsString::from)).collect()
        };
        assert_eq!(
            left(&["noetl", "worker", "--token", "s", "--slots", "3"]),
            ["noetl", "worker", "--slots", "3"]
        );
        assert_eq!(
            left(&["noetl", "worker", "--token=s", "--token-file", "f"]),
            ["noetl", "worker", "--token-file", "f"]
        );
    }
}
