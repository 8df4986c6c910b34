//! Aggregate numbers of a control plane, for dashboards.
//!
//! No event log is read: executions are counted by status in the index of their rows, which costs
//! about one small index entry per stored execution.

use std::sync::Arc;

use noetl_model::{Map, Tenant, Timestamp};
use noetl_store::command_leases::SILENCE_MAX;
use noetl_store::{
    Connections, ExecutionFilter, ExecutionRow, ExecutionStatus, RuntimeFilter, RuntimeKind, Sql,
    SqlError, StartCounts, StoreError, TimeBuckets, ViewStore,
};

/// Number of recent executions returned.
const RECENT: usize = 10;

#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub running: u64,
    /// Number of executions that succeeded.
    pub completed: u64,
    /// Number of executions that failed.
    pub failed: u64,
    /// Number of executions that were cancelled.
    pub cancelled: u64,
    /// Number of playbooks, each path counted once.
    pub playbooks: u64,
    /// Number of remote workers with a heartbeat within `SILENCE_MAX`.
    pub workers: u64,
    /// Most recent executions, at most 10.
    pub recent: Vec<ExecutionRow>,
}

impl Stats {
    pub fn total(&self) -> u64 {
        self.running + self.completed + self.failed + self.cancelled
    }
}

/// Reads aggregate numbers. Cheap to clone.
#[derive(Clone)]
pub struct Overview {
    pub(crate) store: Arc<dyn ViewStore>,
}

impl Overview {
    /// Returns the numbers of a tenant.
    pub async fn stats(&self, tenant: &Tenant, now: Timestamp) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        for (status, count) in self.store.executions_by_status(tenant).await? {
            match status {
                ExecutionStatus::Running => stats.running = count,
                ExecutionStatus::Completed => stats.completed = count,
                ExecutionStatus::Failed => stats.failed = count,
                ExecutionStatus::Cancelled => stats.cancelled = count,
            }
        }
        stats.playbooks = self.store.newest_of(tenant, "playbook").await?.len() as u64;
        let kind = Some(RuntimeKind::WorkerPool);
        let filter = RuntimeFilter { kind, ..RuntimeFilter::default() };
        let workers = self.store.runtimes(tenant, &filter).await?;
        let is_there = |heartbeat: Timestamp| heartbeat.plus(SILENCE_MAX) >= now;
        stats.workers = workers.iter().filter(|row| is_there(row.heartbeat)).count() as u64;
        let newest = ExecutionFilter { limit: RECENT, ..ExecutionFilter::default() };
        stats.recent = self.store.executions(tenant, &newest).await?;
        Ok(stats)
    }

    /// Returns the number of a tenant's executions by start time and current status.
    pub async fn activity(
        &self,
        tenant: &Tenant,
        stretch: TimeBuckets,
    ) -> Result<Vec<StartCounts>, StoreError> {
        self.store.executions_by_start(tenant, stretch).await
    }

    /// Runs an SQL statement of an operator.
    pub async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        self.store.run_sql(sql).await
    }

    /// Returns the names of the store's tables.
    pub async fn tables(&self) -> Result<Vec<String>, StoreError> {
        self.store.table_names().await
    }

    /// Returns the connection counts of the store, if it has a pool.
    pub fn connections(&self) -> Option<Connections> {
        self.store.connections()
    }
}
