//! Arguments of `noetl register`, `noetl catalog`, and `noetl list`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::RemoteArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum RegisterCommand {
    /// Register playbooks in the catalog.
    Playbook(SourceArguments),
    /// Store credentials from files with a `{name, type, data}` object, or with a list of them.
    Credential(SourceArguments),
}

#[derive(Debug, Args)]
#[group(id = "source", required = true, multiple = false)]
pub(crate) struct DocumentSource {
    /// File to register; `-` reads stdin.
    #[arg(long, short, value_name = "FILE", group = "source")]
    pub(crate) file: Option<PathBuf>,
    /// Directory to search recursively for YAML files, and for JSON files of credentials.
    #[arg(long, short, value_name = "DIR", group = "source")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    #[command(flatten)]
    pub(crate) source: DocumentSource,
    /// Register a document even if it has errors.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Register documents of any kind; `-` reads stdin.
    Register(DocumentsArguments),
    /// Register documents in batches, from files and from all YAML files below directories.
    Load(LoadArguments),
    /// List documents, the newest version of each.
    List(ListDocumentsArguments),
    /// Print a document as registered.
    Get(ShowArguments),
    /// Validate documents without registering them.
    Validate(ValidateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DocumentsArguments {
    /// Documents to register; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Register documents even if they have errors.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Files, and directories to search recursively.
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Maximum number of documents per request, up to 1,000.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) batch_size: u16,
    /// List the documents that would be sent, without sending them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Register documents even if they have errors.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListDocumentsArguments {
    /// Kind of the documents to list, such as playbook or subscription [default: all].
    pub(crate) kind: Option<String>,
    /// List all versions of each document.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Kind to list, such as playbook, subscription, or credential.
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Catalog path of the document.
    pub(crate) path: String,
    /// Version of the document [default: latest].
    #[arg(long, short = 'V', value_name = "N")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// Documents to validate; `-` reads one from stdin.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
