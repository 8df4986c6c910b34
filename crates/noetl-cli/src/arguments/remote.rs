//! Arguments that select a server and the output format.

use clap::Args;

use super::{ClientFlags, DataFlags, Flags};
use crate::output::OutputFormat;

/// Server to call, and format of its response.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<ClientFlags>,
    /// Host of the server, with --port.
    #[arg(long, value_name = "HOST", requires = "port", conflicts_with = "client.server_url")]
    #[arg(help_heading = "Server")]
    pub(crate) host: Option<String>,
    /// Port of the server, with --host.
    #[arg(short, long, value_name = "PORT", requires = "host", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    /// Context that names the server; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["client.server_url", "host"])]
    #[arg(help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// Output format [default: table].
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) output: Option<OutputFormat>,
    /// Print JSON, as --output json does.
    #[arg(short, long, conflicts_with = "output", help_heading = "Output")]
    pub(crate) json: bool,
}

impl RemoteArguments {
    /// Returns the output format: JSON with `--json`, else `--output`, else a table.
    pub(crate) fn form(&self) -> OutputFormat {
        match (self.json, self.output) {
            (true, _) => OutputFormat::Json,
            (false, form) => form.unwrap_or_default(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) database: Flags<DataFlags>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
