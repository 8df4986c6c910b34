//! What can be said about the audit of secrets.

use clap::{Args, Subcommand};
use noetl_store::AuditHead;

use super::{DbArguments, RemoteArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List who asked for which secret, latest first.
    List(AuditArguments),
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
