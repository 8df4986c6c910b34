//! Audit log of secret uses: the requester, the credential, and the outcome.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Timestamp};

use crate::{AuditChain, AuditLink, SecretUse, StoreError};

/// Filter of an audit listing.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Includes only uses of this credential.
    pub credential: Option<String>,
    /// Includes only uses for this execution.
    pub execution: Option<ExecutionId>,
    /// Includes only uses at or after this time.
    pub from: Option<Timestamp>,
    /// Includes only uses at or before this time.
    pub to: Option<Timestamp>,
    /// Maximum number of uses to return.
    pub limit: usize,
}

impl AuditFilter {
    /// Returns `true` if the use matches the filter.
    pub fn takes(&self, used: &SecretUse) -> bool {
        self.credential.as_ref().is_none_or(|name| used.credential == *name)
            && self.execution.is_none_or(|execution| used.execution == Some(execution))
            && self.from.is_none_or(|from| used.at >= from)
            && self.to.is_none_or(|to| used.at <= to)
    }
}

/// Audit log of secrets: append-only, and purged by age.
#[async_trait]
pub trait SecretAuditStore: Send + Sync {
    /// Adds a use and its link atomically. Returns `false` without effect if the ID is a repeat.
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError>;

    /// Returns the uses that match a filter, latest first, then by descending ID.
    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError>;

    /// Returns the summary of the chain, which covers all tenants.
    async fn audit_chain(&self) -> Result<AuditChain, StoreError>;

    /// Returns up to `limit` links after this number, in order, each with its use.
    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError>;

    /// Removes up to `limit` uses of all tenants that are older than `age` by the store's clock,
    /// earliest first, and returns their number. Fewer than `limit` means that none are left. The
    /// links stay.
    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError>;
}
