//! Arguments that select a server and the output format.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Server to call, and format of its response.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArguments {
    /// Server URL, such as http://host:8082. [env: NOETL_SERVER_URL] [default: that of the current
    /// context, else http://127.0.0.1:8082]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) server_url: Option<String>,
    /// Host of the server, with --port.
    #[arg(long, value_name = "HOST", requires = "port", conflicts_with = "server_url")]
    #[arg(help_heading = "Server")]
    pub(crate) host: Option<String>,
    /// Port of the server, with --host.
    #[arg(short, long, value_name = "PORT", requires = "host", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    /// Context that names the server; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["server_url", "host"])]
    #[arg(help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// Access token. [env: NOETL_TOKEN or NOETL_SESSION_TOKEN] [default: that of the context]
    #[arg(long, value_name = "TOKEN", alias = "session-token", help_heading = "Server")]
    pub(crate) token: Option<String>,
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

/// Output format of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Human-readable text or table.
    #[default]
    Table,
    /// JSON, as returned by the server.
    Json,
    /// YAML form of the JSON response.
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Data directory of `noetl dev`.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
