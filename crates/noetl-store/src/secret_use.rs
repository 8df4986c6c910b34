//! Uses of secrets, as the audit log records them.

use noetl_model::{AuditId, ExecutionId, Timestamp};

/// A use of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Audit ID, minted by the caller.
    pub id: AuditId,
    pub at: Timestamp,
    pub credential: String,
    /// Requested operation, such as `resolve`.
    pub operation: String,
    /// Outcome of the operation, such as `ok`.
    pub outcome: String,
    /// Worker that requested the secret.
    pub worker: Option<String>,
    /// Execution that uses the secret.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
    /// Region of the server that responded.
    pub server_region: Option<String>,
    /// Region of the server that made the request for the worker.
    pub broker_region: Option<String>,
    /// Version of the key that encrypts the secret.
    pub key_version: Option<String>,
    pub notes: Option<String>,
}
