//! Output formats of the commands.

use clap::ValueEnum;

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
