//! The numbers of a whole control plane, for dashboards.
//!
//! Nothing here reads a log: executions are counted in the index of their rows by status, which costs
//! about as much as reading one small index entry per execution that is kept.

use std::sync::Arc;

use noetl_model::{Map, Tenant, Timestamp};
use noetl_store::holdings::SILENCE_MAX;
use noetl_store::{
    Connections, ExecutionFilter, ExecutionRow, ExecutionStatus, RuntimeFilter, RuntimeKind, Sql,
    SqlError, Started, Store, StoreError, Stretches,
};

/// How many executions are listed as recent.
const RECENT: usize = 10;

#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Executions under way.
    pub running: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that ended badly.
    pub failed: u64,
    /// Those that were stopped.
    pub cancelled: u64,
    /// Playbooks, each path once.
    pub playbooks: u64,
    /// Workers elsewhere that were heard of lately.
    pub workers: u64,
    /// The newest executions.
    pub recent: Vec<ExecutionRow>,
}

impl Stats {
    pub fn total(&self) -> u64 {
        self.running + self.completed + self.failed + self.cancelled
    }
}

/// The overview service. Cheap to clone.
#[derive(Clone)]
pub struct Overview {
    pub(crate) store: Arc<dyn Store>,
}

impl Overview {
    /// How things stand for a tenant.
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

    /// How many executions of a tenant started when, and how they stand now.
    pub async fn activity(
        &self,
        tenant: &Tenant,
        stretch: Stretches,
    ) -> Result<Vec<Started>, StoreError> {
        self.store.executions_by_start(tenant, stretch).await
    }

    /// Runs a statement of an operator.
    pub async fn run_sql(&self, sql: &Sql) -> Result<Vec<Map>, SqlError> {
        self.store.run_sql(sql).await
    }

    /// The names of the store's tables.
    pub async fn tables(&self) -> Result<Vec<String>, StoreError> {
        self.store.table_names().await
    }

    /// How many connections the store has.
    pub fn connections(&self) -> Option<Connections> {
        self.store.connections()
    }
}
