//! The `noetl` program. Only this crate selects adapters and reads the environment.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 execution failed, 2
//! invalid playbook or arguments, 3 environment error (database in use, port taken, disk full), 70
//! internal error, 130 interrupted.

mod approvals;
mod arguments;
mod bus;
mod commands;
mod contexts;
mod data_directory;
mod database;
mod dev_token;
mod egress;
mod error;
mod http_options;
mod isolation;
mod keys;
mod leading_flags;
mod limits;
mod notifications;
mod outbox;
mod output;
mod policy;
mod process;
mod remote;
mod results;
mod runtime;
mod sessions;
mod settings;
mod shards;
mod signals;
mod stores;
mod subscriptions;
mod traces;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command, EhdbCommand, GetCommand};
use crate::error::CliError;

/// Memory allocator. Returns memory that only startup needed to the system, and costs less per step
/// than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "step-host") {
        return noetl_tools::step_host::main(words);
    }
    // Steps may run as this user. They must not read the environment or the memory of this process.
    process::hide();
    if let Some(code) = process::supervise_as_init() {
        return code;
    }
    let arguments =
        Arguments::parse_from(leading_flags::reorder_leading_flags(std::env::args_os()));
    let loaded = match arguments.command.uses_settings() {
        true => settings::load(arguments.config.as_deref(), arguments.command.unreadable_files()),
        false => Ok(()),
    };
    let outcome = loaded.and_then(|()| run(arguments));
    outcome.unwrap_or_else(|failure| {
        output::failure(&failure);
        failure.exit_code()
    })
}

fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.command {
        Command::Run(arguments) => commands::run::main(arguments),
        Command::Check(arguments) => commands::check::main(&arguments),
        Command::Dev(arguments) => commands::dev::main(&arguments),
        Command::Server(arguments) => commands::server::main(&arguments),
        Command::Worker(arguments) => commands::worker::main(&arguments),
        Command::Db(command) => commands::db::main(command),
        Command::Completions(arguments) => commands::completions::main(&arguments),
        Command::Config(command) => commands::config::main(&command, arguments.config.as_deref()),
        Command::Context(command) => commands::context::main(command),
        Command::Doctor(arguments) => commands::doctor::main(&arguments),
        Command::Register(command) => commands::register::main(&command),
        Command::Catalog(command) => commands::catalog::main(&command),
        Command::List(arguments) => commands::catalog::list(&arguments),
        Command::Execute(arguments) => commands::start::main(&arguments),
        Command::Retry(arguments) => commands::start::retry(&arguments),
        Command::Rerun(arguments) => commands::start::rerun(&arguments),
        Command::Fork(arguments) => commands::start::fork(&arguments),
        Command::Status(arguments) => commands::status::main(&arguments),
        Command::Executions(arguments) => commands::executions::main(&arguments),
        Command::Events(arguments) => commands::events::main(&arguments),
        Command::Logs(arguments) => commands::logs::main(&arguments),
        Command::Replay(arguments) => commands::replay::main(&arguments),
        Command::Why(arguments) => commands::why::main(&arguments),
        Command::Cancel(arguments) => commands::cancel::cancel(&arguments),
        Command::Cleanup(arguments) => commands::cancel::cleanup(&arguments),
        Command::Credential(command) => commands::credential::main(&command),
        Command::Get(GetCommand::Credential(arguments)) => commands::credential::get(&arguments),
        Command::Query(arguments) => commands::query::main(&arguments),
        Command::Ehdb(EhdbCommand::Query(query)) => commands::ehdb::main(&query),
        Command::Schedule(command) => commands::schedule::main(&command),
        Command::Subscription(command) => commands::subscription::main(&command),
        Command::Workers(arguments) => commands::workers::main(&arguments),
        Command::Token(command) => commands::token::main(command),
        Command::Grant(command) => commands::grant::main(command),
        Command::Audit(command) => commands::audit::main(command),
    }
}
