//! What can be said about documents.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum RegisterCommand {
    /// Register playbooks.
    Playbook(SourceArguments),
    /// Keep credentials: files of `{name, type, data}`, or of lists of them.
    Credential(SourceArguments),
}

#[derive(Debug, Args)]
#[group(id = "source", required = true, multiple = false)]
pub(crate) struct Source {
    /// This file; `-` is stdin.
    #[arg(long, short, value_name = "FILE", group = "source")]
    pub(crate) file: Option<PathBuf>,
    /// Every YAML or JSON file in this directory and below.
    #[arg(long, short, value_name = "DIR", group = "source")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Register a document with errors, too.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Register documents of any kind; `-` is stdin.
    Register(DocumentsArguments),
    /// Register documents in batches: files, and every YAML file of directories and below.
    Load(LoadArguments),
    /// List documents, the newest version of each.
    List(ListDocumentsArguments),
    /// Print a document.
    Get(ShowArguments),
    /// Say what is wrong with documents, and keep nothing.
    Validate(ValidateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DocumentsArguments {
    /// The documents; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Register a document with errors, too.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// The files and directories.
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// The most documents of one request.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) batch_size: u16,
    /// Say what would be sent, and send nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Register documents with errors, too.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListDocumentsArguments {
    /// Only this kind, as playbook or subscription.
    pub(crate) kind: Option<String>,
    /// Every version of each.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// The kind, as playbook, subscription or credential.
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Its path.
    pub(crate) path: String,
    /// Its version; the highest when left out.
    #[arg(long, short = 'V', value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// The documents; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
