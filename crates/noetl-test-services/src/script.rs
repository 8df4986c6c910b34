//! Runs the scripts in `scripts/services`.

use std::process::Command;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services");

/// Runs a script and returns its trimmed output.
///
/// # Errors
///
/// Returns the script's arguments and error output if it fails.
pub(crate) fn run(script: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(format!("{SCRIPTS}/{script}")).args(arguments).output();
    let output = output.expect("the script is executable");
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{script} {arguments:?}: {error}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a script of a service that every test machine has.
///
/// # Panics
///
/// Panics if the script fails, with the command that installs the service.
#[track_caller]
pub(crate) fn require(script: &str, arguments: &[&str]) -> String {
    run(script, arguments).unwrap_or_else(|error| {
        panic!("{error}\nif it is not installed: `scripts/services/{script} install`")
    })
}
