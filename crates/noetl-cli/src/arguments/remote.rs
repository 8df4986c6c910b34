//! Which server is asked, and how its answer is printed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Which server, and how its answer is printed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArguments {
    /// The server, as http://host:8082. Else NOETL_SERVER_URL, else the current context, else
    /// http://127.0.0.1:8082.
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) server_url: Option<String>,
    /// The server's host, with --port.
    #[arg(long, value_name = "HOST", requires = "port", conflicts_with = "server_url")]
    #[arg(help_heading = "Server")]
    pub(crate) host: Option<String>,
    /// The server's port, with --host.
    #[arg(short, long, value_name = "PORT", requires = "host", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    /// The server of this context; see `noetl context`.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["server_url", "host"])]
    #[arg(help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// The token to show. Else NOETL_TOKEN, NOETL_SESSION_TOKEN, or the one of the context.
    #[arg(long, value_name = "TOKEN", alias = "session-token", help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// How to print the answer [default: table].
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) output: Option<Form>,
    /// The same as --output json.
    #[arg(short, long, conflicts_with = "output", help_heading = "Output")]
    pub(crate) json: bool,
}

impl RemoteArguments {
    /// How to print the answer.
    pub(crate) fn form(&self) -> Form {
        match (self.json, self.output) {
            (true, _) => Form::Json,
            (false, form) => form.unwrap_or_default(),
        }
    }
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    #[default]
    Table,
    /// What the server answered.
    Json,
    /// The same as YAML.
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Where `noetl dev` keeps its database.
    #[arg(long, env = "NOETL_DATA", default_value = "noetl-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}
