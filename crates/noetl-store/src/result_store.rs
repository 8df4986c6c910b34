//! Results that workers hand in apart from their reports.

use async_trait::async_trait;
use noetl_model::{ExecutionId, ResultId, Tenant, Timestamp, Value};

use crate::StoreError;

/// What is known of a result without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultSummary {
    /// Its id, minted by the caller.
    pub id: ResultId,
    /// The execution it belongs to.
    pub execution: ExecutionId,
    /// Its name; several results of an execution may have it.
    pub name: String,
    /// How long it is meant to live, in the caller's words.
    pub scope: String,
    /// The step it comes from.
    pub source_step: Option<String>,
    /// How large it is, as its caller counts.
    pub bytes: u64,
    /// Its checksum, as its caller computes it.
    pub sha256: String,
    /// What its data is.
    pub media_type: String,
    /// When it ends to exist; never when absent.
    pub expires_at: Option<Timestamp>,
}

/// A result to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewResult {
    /// All but its data.
    pub summary: ResultSummary,
    pub data: Value,
}

/// Results of executions. Each call is atomic. Another tenant's do not exist, and neither does one
/// from the instant it expires on, by the store's clock, whether it was purged or not.
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// Keeps a result. Whether it was kept: when its id is taken, by whomever, nothing changes.
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError>;

    /// The data of the result with this id, if execution and name are its own.
    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError>;

    /// Results of an execution with an id above `after`, in id order.
    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError>;

    /// Removes up to `limit` results of an execution, expired or not, and says how many; fewer
    /// than `limit` means that none are left.
    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Removes up to `limit` expired results of all tenants, and says how many; fewer than
    /// `limit` means that none are left.
    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError>;
}
