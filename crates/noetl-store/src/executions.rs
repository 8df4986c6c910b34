//! Execution rows, which listings and status pages read.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Seq, Tenant, Timestamp};

use crate::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutionStatus {
    /// The execution has not ended.
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl ExecutionStatus {
    /// Returns the text stored and sent on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Returns the status with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Running, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == text)
    }

    /// Returns `true` if the status is terminal.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// An execution as shown in listings; written in the transaction of the events it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    pub id: ExecutionId,
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub playbook_version: u32,
    /// Execution that started this one.
    pub parent: Option<ExecutionId>,
    pub status: ExecutionStatus,
    /// Number of events in the event log.
    pub version: Seq,
    pub started_at: Timestamp,
    /// Time of the newest event.
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Failure message in one sentence.
    pub error: Option<String>,
    /// Number of distinct steps entered.
    pub steps_entered: u32,
    /// Number of step runs that completed.
    pub steps_completed: u32,
    /// Number of step runs that failed.
    pub steps_failed: u32,
    /// Number of active step runs.
    pub steps_running: u32,
    /// Step that was entered last.
    pub current_step: Option<Arc<str>>,
}

/// Filter of an execution listing.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Includes only executions with this status; `None` includes all.
    pub status: Option<ExecutionStatus>,
    /// Includes only paths that contain this text, ignoring case.
    pub path: Option<String>,
    /// Includes only this catalog entry.
    pub catalog: Option<CatalogId>,
    /// Includes only children of this execution.
    pub parent: Option<ExecutionId>,
    /// Includes only executions started before this time.
    pub started_before: Option<Timestamp>,
    /// Includes only executions started at or after this time.
    pub started_after: Option<Timestamp>,
    /// Includes only executions with this text in their path (ignoring case), ID, or error
    /// (case-sensitive).
    pub text: Option<String>,
    /// Number of executions to skip.
    pub offset: usize,
    /// Maximum number of executions to return.
    pub limit: usize,
}

/// Time buckets of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBuckets {
    /// Start of the first bucket.
    pub from: Timestamp,
    /// Length of each bucket, in microseconds; at least 1.
    pub width_micros: i64,
    pub count: u32,
}

impl TimeBuckets {
    /// Returns the end of the last bucket.
    pub fn end(self) -> Timestamp {
        let whole = self.width_micros.saturating_mul(i64::from(self.count));
        Timestamp::from_micros(self.from.as_micros().saturating_add(whole))
    }

    /// Returns the index of the bucket that contains a time.
    pub fn bucket_at(self, at: Timestamp) -> Option<u32> {
        if at < self.from || at >= self.end() {
            return None;
        }
        let passed = at.as_micros().saturating_sub(self.from.as_micros());
        u32::try_from(passed / self.width_micros.max(1)).ok()
    }
}

/// Number of executions that started in one bucket and have one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartCounts {
    /// Index of the bucket, from 0.
    pub place: u32,
    /// Current status of the executions.
    pub status: ExecutionStatus,
    pub count: u64,
}

/// Returns `true` if `path` contains `text`, ignoring case. Every store calls this function,
/// because databases disagree on case outside ASCII.
pub fn path_contains(path: &str, text: &str) -> bool {
    path.to_lowercase().contains(&text.to_lowercase())
}

/// Reads execution rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait ExecutionStore: Send + Sync {
    /// Returns the row of an execution, or `None` if it belongs to another tenant.
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError>;

    /// Returns the tenant of an execution.
    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError>;

    /// Returns executions of a tenant by descending start time, then by descending ID.
    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError>;

    /// Returns the number of a tenant's executions by status. Omits statuses without any. Reads one
    /// index entry per execution.
    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError>;

    /// Returns the number of a tenant's executions by start time and current status. Omits empty
    /// cells. Reads one index entry per start in the range.
    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError>;

    /// Returns executions of all tenants with an ID above `after`, in ID order, with their tenants.
    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError>;

    /// Returns unfinished executions of all tenants with an ID above `after`, in ID order.
    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError>;
}
