//! `noetl completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::arguments::{Arguments, CompletionsArguments};
use crate::error::CliError;
use crate::output;

pub(crate) fn main(arguments: &CompletionsArguments) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "noetl", &mut script);
    output::data(&script)?;
    Ok(ExitCode::SUCCESS)
}
