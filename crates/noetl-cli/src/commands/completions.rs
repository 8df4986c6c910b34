//! `noetl completions`: a completion script for a shell.

use clap::CommandFactory;

use crate::arguments::{Arguments, CompletionsArguments};

pub(crate) fn main(arguments: &CompletionsArguments) {
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "noetl", &mut std::io::stdout());
}
