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
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::arguments::WorkerArguments;
use crate::error::{CliError, ErrorKind};
use crate::settings::setting;

/// Variables that may contain the worker's token, in order of precedence.
const TOKENS: [&str; 2] = ["NOETL_TOKEN", "NOETL_SESSION_TOKEN"];

/// Secrets of servers that a worker doesn't need.
const OTHERS: [&str; 2] = ["NOETL_INTERNAL_API_TOKEN", "NOETL_ENCRYPTION_KEY"];

const TOKEN_FILE: &str = "NOETL_TOKEN_FILE";

/// Maximum size of a token, in bytes. Tokens of identity providers have a few thousand.
const TOKEN_MAX: u64 = 64 << 10;

/// Replaces this process with one that has no secrets in its arguments and environment. Returns
/// `Ok` only if there are no secrets to remove.
pub(super) fn leave_environment(arguments: &WorkerArguments) -> Result<(), CliError> {
    let held = |name: &&str| std::env::var_os(name).is_some();
    let is_exposed = arguments.token.is_some() || TOKENS.iter().chain(&OTHERS).any(held);
    if !is_exposed {
        return Ok(());
    }
    let token = match (&arguments.token, file(arguments)) {
        (Some(token), _) => Some(token.clone()),
        // The new process reads the file, and inherits stdin for that.
        (None, Some(_)) => None,
        (None, None) => TOKENS.iter().find_map(|name| setting(name)),
    };
    let program = std::env::current_exe().map_err(|error| restart_failed(&error))?;
    let mut given = without_token(std::env::args_os());
    let mut again = Command::new(program);
    if let Some(name) = given.next() {
        again.arg0(name);
    }
    again.args(given);
    TOKENS.iter().chain(&OTHERS).for_each(|name| {
        again.env_remove(name);
    });
    if let Some(token) = token {
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

/// Returns the token from the file named by the arguments or the environment, or `None` if there is
/// no such file name.
pub(super) fn token_in_file(arguments: &WorkerArguments) -> Result<Option<String>, CliError> {
    let Some(path) = file(arguments) else { return Ok(None) };
    let mut text = String::new();
    let read = match path.as_os_str() == OsStr::new("-") {
        true => std::io::stdin().lock().take(TOKEN_MAX).read_to_string(&mut text),
        false => {
            let opened = std::fs::File::open(&path);
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

/// Returns the path of the token file; `-` is stdin.
pub(super) fn file(arguments: &WorkerArguments) -> Option<PathBuf> {
    let named = arguments.token_file.clone();
    named.or_else(|| setting(TOKEN_FILE).map(|path| PathBuf::from(path.trim())))
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
        let left = |given: &[&str]| -> Vec<OsString> {
            without_token(given.iter().map(OsString::from)).collect()
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
