//! What can be said about the audit of secrets.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use noetl_model::Timestamp;
use noetl_store::AuditHead;

use super::{DbArguments, RemoteArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List who asked for which secret, latest first.
    List(AuditArguments),
    /// Write the records of the audit as JSON lines, oldest first, or send them to syslog.
    Export(ExportAuditArguments),
    /// Check in the database that nothing of the audit was changed, removed or moved, and that every
    /// encrypted value is where it was sealed. Changes nothing.
    Verify(VerifyAuditArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Only this credential.
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<String>,
    /// Only for this execution.
    #[arg(long, value_name = "ID")]
    pub(crate) execution: Option<i64>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExportAuditArguments {
    /// Only records from this time on, as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Timestamp>,
    /// Only records up to this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<Timestamp>,
    /// Send each record to syslog (RFC 5424) instead of stdout:
    /// `unix:/dev/log`, or `udp:host:514`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) syslog: Option<SyslogAddress>,
    #[command(flatten)]
    pub(crate) remote: RemoteArguments,
}

/// Socket on which syslog listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyslogAddress {
    /// A Unix socket, of datagrams or of a stream.
    Unix(PathBuf),
    /// A host and a port.
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
    /// The head that an earlier check printed and that was kept elsewhere: it has to be a part of
    /// the chain still.
    #[arg(long, value_name = "HEAD")]
    pub(crate) head: Option<AuditHead>,
    /// After how many days uses are purged; one that is younger and missing was removed. 0: none is.
    #[arg(long, env = "NOETL_AUDIT_RETENTION_DAYS", value_name = "N", default_value_t = 90)]
    pub(crate) audit_retention_days: u32,
    #[command(flatten)]
    pub(crate) db: DbArguments,
}
