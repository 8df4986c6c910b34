//! Arguments of `noetl config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings, without secrets.
    Show(ShowConfigArguments),
    /// Report all problems of the configuration files and the environment.
    Check(CheckConfigArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShowConfigArguments {
    /// Print the origin of each value: file with line and column, variable, or default.
    #[arg(long)]
    pub(crate) origin: bool,
    /// Output format. JSON contains every setting with its origin.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArguments {
    /// File to check instead of the files that apply and the environment.
    pub(crate) file: Option<PathBuf>,
    /// Output format of the problems.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}
