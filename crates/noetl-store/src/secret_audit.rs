//! Who asked for which secret, and what came of it.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{AuditId, ExecutionId, Tenant, Timestamp};

use crate::{AuditChain, AuditLink, StoreError};

/// One use of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Its id, minted by the caller.
    pub id: AuditId,
    pub at: Timestamp,
    /// The name of the credential.
    pub credential: String,
    /// What was asked, as `resolve`.
    pub operation: String,
    /// What came of it, as `ok`.
    pub outcome: String,
    /// The worker that asked.
    pub worker: Option<String>,
    /// The execution it was for.
    pub execution: Option<ExecutionId>,
    pub parent: Option<ExecutionId>,
    /// The region of the server that answered.
    pub server_region: Option<String>,
    /// The region of the server that asked on behalf of the worker.
    pub broker_region: Option<String>,
    /// The version of the key the secret is encrypted under.
    pub key_version: Option<String>,
    pub notes: Option<String>,
}

/// Which uses to list.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of this credential.
    pub credential: Option<String>,
    /// Only for this execution.
    pub execution: Option<ExecutionId>,
    /// Only from this instant on.
    pub from: Option<Timestamp>,
    /// Only up to this instant, and at it.
    pub to: Option<Timestamp>,
    /// How many to return at most.
    pub limit: usize,
}

impl AuditFilter {
    /// Whether the list shows this use.
    pub fn takes(&self, used: &SecretUse) -> bool {
        self.credential.as_ref().is_none_or(|name| used.credential == *name)
            && self.execution.is_none_or(|execution| used.execution == Some(execution))
            && self.from.is_none_or(|from| used.at >= from)
            && self.to.is_none_or(|to| used.at <= to)
    }
}

/// The audit of secrets: only ever added to, and purged by age.
#[async_trait]
pub trait SecretAudit: Send + Sync {
    /// Adds a use and its link, together. Whether it was added: a repeated id changes nothing.
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError>;

    /// The uses a filter takes, latest first, at equal times the larger id first.
    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError>;

    /// How the chain of all tenants' uses stands.
    async fn audit_chain(&self) -> Result<AuditChain, StoreError>;

    /// Up to `limit` links after this number, in their order, each with its use.
    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError>;

    /// Removes up to `limit` uses of all tenants that are more than `age` ago by the store's clock,
    /// earliest first, and says how many; fewer than `limit` means that none are left. Their
    /// links stay.
    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError>;
}
