//! Results that workers store separately from their reports.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ResultId, Tenant, Timestamp, Value};

use crate::StoreError;

/// A result without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSummary {
    /// Result ID, minted by the caller.
    pub id: ResultId,
    /// Execution that the result belongs to.
    pub execution: ExecutionId,
    /// Name of the result. Several results of an execution may share it.
    pub name: String,
    /// Intended lifetime, as text chosen by the caller; the store does not interpret it.
    pub scope: String,
    /// Step that produced the result.
    pub source_step: Option<String>,
    /// Size in bytes, as the caller reports it.
    pub bytes: u64,
    /// Checksum, as the caller computes it.
    pub sha256: String,
    /// Media type of the data.
    pub media_type: String,
    /// Expiration time; never expires if `None`.
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewResult {
    pub summary: ResultSummary,
    pub data: Value,
}

/// Results of executions. Each call is atomic. Other tenants' results are invisible, and so is a
/// result from its expiration time on, by the store's clock, whether it was purged or not.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// Stores a result. Returns `false` without effect if its ID is in use, by any tenant.
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError>;

    /// Returns the data of the result with this ID, if its execution and name match.
    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError>;

    /// Returns results of an execution with an ID above `after`, in ID order.
    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError>;

    /// Removes up to `limit` results of an execution, expired or not, and returns their number.
    /// Fewer than `limit` means that none are left.
    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Removes up to `limit` expired results of all tenants and returns their number. Fewer than
    /// `limit` means that none are left.
    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError>;
}
