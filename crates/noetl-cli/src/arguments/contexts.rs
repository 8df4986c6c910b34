//! Arguments of `noetl context`.

use clap::{Args, Subcommand};

use super::RemoteArguments;
use crate::output::OutputFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Add a context for a server.
    Add(SetContextArguments),
    /// Change the settings of a context.
    Update(SetContextArguments),
    /// Make a context the current one.
    Use(NamedArguments),
    /// List contexts and mark the current one.
    List(ContextOutput),
    /// Print the current context.
    Current(ContextOutput),
    /// Delete a context from this machine.
    Delete(NamedArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetContextArguments {
    /// Name of the context.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) fields: ContextFields,
    /// Make it the current context.
    #[arg(long)]
    pub(crate) set_current: bool,
}

/// Settings of a context.
#[derive(Debug, Default, Args)]
pub(crate) struct ContextFields {
    /// Server URL, such as `https://noetl.example`.
    #[arg(long, value_name = "URL")]
    pub(crate) server_url: Option<String>,
    /// Access token for the server; `-` reads it from stdin, which keeps it out of the shell
    /// history.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Runtime for other programs that read the context: local, distributed, or auto.
    #[arg(long, value_name = "NAME", value_parser = ["auto", "local", "distributed"])]
    pub(crate) runtime: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArguments {
    /// Name of the context.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ContextOutput {
    /// Output format [default: table].
    #[arg(long, value_enum)]
    output: Option<OutputFormat>,
    /// Print JSON, as --output json does.
    #[arg(short, long, conflicts_with = "output")]
    json: bool,
}

impl ContextOutput {
    /// Returns the output format: `--output` or `--json`, else a table.
    pub(crate) fn form(&self) -> OutputFormat {
        let like = RemoteArguments { output: self.output, json: self.json, ..Default::default() };
        like.form()
    }
}
