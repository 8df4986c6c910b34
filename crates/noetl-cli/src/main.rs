//! The `noetl` program: the one place that picks adapters and reads the environment.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 well, 1 the execution ended
//! badly, 2 the playbook or the call is wrong, 3 the surroundings are (a database in use, a port
//! taken, a full disk), 70 a defect of ours, 130 interrupted.

mod approvals;
mod arguments;
mod bus;
mod commands;
mod database;
mod edge;
mod failure;
mod keys;
mod notices;
mod output;
mod policy;
mod results;
mod runtime;
mod settings;
mod shards;
mod signals;
mod stores;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Run(arguments) => commands::run::main(arguments),
        Command::Check(arguments) => commands::check::main(&arguments),
        Command::Dev(arguments) => commands::dev::main(arguments),
        Command::Server(arguments) => commands::server::main(arguments),
        Command::Db(command) => commands::db::main(command),
        Command::Completions(arguments) => commands::completions::main(&arguments),
    };
    outcome.unwrap_or_else(|failure| {
        output::failure(&failure);
        failure.exit_code()
    })
}
