//! Arguments of `noetl audit`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use noetl_model::Timestamp;
use noetl_store::AuditHead;

use super::{AuditRetentionFlags, DbArguments, Flags, RemoteArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List requests for secrets, latest first.
    List(AuditArguments),
    /// Write audit records as JSON lines, oldest first, or send them to syslog.
    Export(ExportAuditArguments),
    /// Verify in the database that no audit record was changed, removed, or moved, and that every
    /// encrypted value is in the row it was sealed for. Read-only.
    Verify(VerifyAuditArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Credential whose records to list.
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<String>,
    /// Execution whose records to list.
    #[arg(long, value_name = "ID")]
    pub(crate) execution: Option<i64>,
    /// Maximum number of records.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExportAuditArguments {
    /// Earliest time of the records to export, such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Timestamp>,
    /// Latest time of the records to export.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<Timestamp>,
    /// Syslog address (RFC 5424) to send each record to, instead of stdout: `unix:/dev/log`, or
    /// `udp:host:514`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) syslog: Option<SyslogAddress>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// Address of a syslog socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyslogAddress {
    /// Path of a Unix socket, either datagram or stream.
    Unix(PathBuf),
    /// Host and port, separated by a colon.
    Udp(String),
}

impl FromStr for SyslogAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(PathBuf::from(path))),
            Some(("udp", address)) if address.contains(':') => Ok(Self::Udp(address.to_owned())),
            _ => Err(format!("'{text}' is no syslog address; write unix:/dev/log or udp:host:514")),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifyAuditArguments {
    /// Head that an earlier verification printed and that you stored outside the database. The
    /// chain must still contain it.
    #[arg(long, value_name = "HEAD")]
    pub(crate) head: Option<AuditHead>,
    #[command(flatten)]
    pub(crate) retention: Flags<AuditRetentionFlags>,
    #[command(flatten)]
    pub(crate) db: DbArguments,
}
