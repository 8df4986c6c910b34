//! The execution rows: what lists and status pages read.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Seq, Tenant, Timestamp};

use crate::StoreError;

/// How an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutionStatus {
    /// Not finished.
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl ExecutionStatus {
    /// The stored and wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// The status of this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Running, Self::Completed, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == text)
    }

    /// Whether nothing can move it any more.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// One execution as lists show it; written in the transaction of the events it follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    pub id: ExecutionId,
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub playbook_version: u32,
    /// The execution that started it.
    pub parent: Option<ExecutionId>,
    pub status: ExecutionStatus,
    /// The number of events in its log.
    pub version: Seq,
    pub started_at: Timestamp,
    /// When its newest event was decided.
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Why it failed, in one sentence.
    pub error: Option<String>,
    /// Steps entered, counting each name once.
    pub steps_entered: u32,
    /// Visits that ended well.
    pub steps_completed: u32,
    /// Visits that ended badly.
    pub steps_failed: u32,
    /// Visits under way.
    pub steps_running: u32,
    /// The step that was entered last.
    pub current_step: Option<Arc<str>>,
}

/// Which executions to list.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Only this status.
    pub status: Option<ExecutionStatus>,
    /// Only paths that contain this text, whatever its case.
    pub path: Option<String>,
    /// Only this catalog entry.
    pub catalog: Option<CatalogId>,
    /// Only those this execution started.
    pub parent: Option<ExecutionId>,
    /// Only those that started before this.
    pub started_before: Option<Timestamp>,
    /// Only those that started at this or later.
    pub started_after: Option<Timestamp>,
    /// Only those with this text in their path, whatever its case, in their id, or in their error as
    /// it is written.
    pub text: Option<String>,
    /// How many to pass over.
    pub offset: usize,
    /// How many to return at most.
    pub limit: usize,
}

/// A time cut into pieces of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretches {
    /// When the first begins.
    pub from: Timestamp,
    /// How long each is, in microseconds; at least one.
    pub width_micros: i64,
    /// How many there are.
    pub count: u32,
}

impl Stretches {
    /// When the last one is over.
    pub fn end(self) -> Timestamp {
        let whole = self.width_micros.saturating_mul(i64::from(self.count));
        Timestamp::from_micros(self.from.as_micros().saturating_add(whole))
    }

    /// Which of them a time is in.
    pub fn place(self, at: Timestamp) -> Option<u32> {
        if at < self.from || at >= self.end() {
            return None;
        }
        let passed = at.as_micros().saturating_sub(self.from.as_micros());
        u32::try_from(passed / self.width_micros.max(1)).ok()
    }
}

/// How many executions that started in one stretch of time stand how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Which stretch, from 0.
    pub place: u32,
    /// How they stand now.
    pub status: ExecutionStatus,
    pub count: u64,
}

/// Whether `path` contains `text`, whatever the case of either. Every store asks this one
/// function, because databases disagree on what a case is outside ASCII.
pub fn path_contains(path: &str, text: &str) -> bool {
    path.to_lowercase().contains(&text.to_lowercase())
}

/// Reads execution rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait Executions: Send + Sync {
    /// The row of one execution; none for another tenant's.
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError>;

    /// The tenant an execution belongs to.
    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError>;

    /// Executions of a tenant, newest start first, of equal starts the larger id first.
    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError>;

    /// How many executions of a tenant stand how; what none does is left out. Reads an index, and
    /// of it an entry per execution.
    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError>;

    /// How many executions of a tenant started when, and how they stand now; what none did is left
    /// out. Of each start in the stretch an entry is read.
    async fn executions_by_start(
        &self,
        tenant: &Tenant,
        stretch: Stretches,
    ) -> Result<Vec<Started>, StoreError>;

    /// Executions of all tenants with an id above `after`, in id order, with whose they are.
    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError>;

    /// Unfinished executions of all tenants with an id above `after`, in id order.
    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError>;
}
