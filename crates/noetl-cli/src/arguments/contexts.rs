//! What can be said about contexts.

use clap::{Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Keep a server under a name.
    Add(SetContextArguments),
    /// Change what is kept under a name.
    Update(SetContextArguments),
    /// Use a context from now on.
    Use(NamedArguments),
    /// List contexts; the current one is marked.
    List(ContextOutput),
    /// Print the current context.
    Current(ContextOutput),
    /// Forget a context.
    Delete(NamedArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SetContextArguments {
    /// Its name.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) fields: ContextFields,
    /// Use it from now on.
    #[arg(long)]
    pub(crate) set_current: bool,
}

/// What is kept of a server.
#[derive(Debug, Default, Args)]
pub(crate) struct ContextFields {
    /// The server, as `https://noetl.example`.
    #[arg(long, value_name = "URL")]
    pub(crate) server_url: Option<String>,
    /// The token to show there; `-` reads it from stdin, which keeps it out of the shell's history.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// local, distributed or auto, for programs that read it.
    #[arg(long, value_name = "NAME", value_parser = ["auto", "local", "distributed"])]
    pub(crate) runtime: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArguments {
    /// Its name.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ContextOutput {
    /// How to print it [default: table].
    #[arg(long, value_enum)]
    output: Option<super::Form>,
    /// The same as --output json.
    #[arg(short, long, conflicts_with = "output")]
    json: bool,
}

impl ContextOutput {
    /// How to print it.
    pub(crate) fn form(&self) -> super::Form {
        let like = RemoteArguments { output: self.output, json: self.json, ..Default::default() };
        like.form()
    }
}
