//! Queries over open commands of all executions: pending approvals, and the load of each worker.
//!
//! Both scan the index of open commands, which contains no ended ones. A scan is bounded and
//! reports where it stopped, so the response stays fast with many open commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_engine::Execution;
use noetl_model::event::ParkReason;
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{CommandRow, ExecutionRow, StoreError};

use crate::executions::Executions;

/// Commands scanned for one response. Takes a few milliseconds.
const SEARCHED_MAX: usize = 20_000;

/// Commands read at a time.
const PAGE: usize = 1000;

/// Tool kind of a step that asks a person.
const APPROVAL: &str = "approval";

/// Step that waits for a person's approval.
#[derive(Debug, Clone)]
pub struct Approval {
    pub execution: ExecutionRow,
    pub command: CommandId,
    pub step: Arc<str>,
    /// Zero-based index of its loop item.
    pub item: Option<u32>,
    /// Question shown to the approver.
    pub message: Option<Value>,
    /// Context shown to the approver.
    pub data: Option<Value>,
    /// Time the step began to wait.
    pub since: Timestamp,
    pub until: Timestamp,
    /// Callback token that an answer has to present.
    pub token: Arc<str>,
}

/// Page of pending approvals, oldest first.
#[derive(Debug, Default)]
pub struct ApprovalPage {
    pub found: Vec<Approval>,
    /// Command after which the next page starts. `None` if the scan is complete.
    pub next: Option<CommandId>,
}

/// Commands claimed by one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLoad {
    pub worker: Arc<str>,
    /// Number of open commands the worker has claimed.
    pub held: u64,
    /// Issue time of the oldest of them.
    pub oldest: Timestamp,
}

#[derive(Debug, Default)]
pub struct LoadSummary {
    /// Load of each worker with open commands, sorted by name.
    pub workers: Vec<WorkerLoad>,
    /// Whether the scan covered all open commands. If not, the counts are lower bounds.
    pub is_whole: bool,
}

/// Execution of the previous command. Cached because the commands of a loop follow one another.
type Looked = Option<(ExecutionId, Option<(ExecutionRow, Execution)>)>;

impl Executions {
    /// Returns pending approvals of a tenant whose command comes after `after`.
    pub async fn approvals(
        &self,
        tenant: &Tenant,
        after: CommandId,
        limit: usize,
    ) -> Result<ApprovalPage, StoreError> {
        let mut found = Vec::new();
        let mut looked: Looked = None;
        let (mut reached, mut searched) = (after, 0);
        loop {
            let page = self.store.open_commands(reached, PAGE).await?;
            let is_last = page.len() < PAGE;
            searched += page.len();
            for row in page {
                reached = row.id;
                if &*row.tool == APPROVAL {
                    found.extend(self.approval(tenant, &row, &mut looked).await?);
                }
                if found.len() >= limit {
                    return Ok(ApprovalPage { found, next: Some(reached) });
                }
            }
            if is_last {
                return Ok(ApprovalPage { found, next: None });
            }
            if searched >= SEARCHED_MAX {
                return Ok(ApprovalPage { found, next: Some(reached) });
            }
        }
    }

    /// Returns the approval that a command waits for. Returns `None` if the command belongs to
    /// another tenant or was answered in the meantime.
    async fn approval(
        &self,
        tenant: &Tenant,
        row: &CommandRow,
        looked: &mut Looked,
    ) -> Result<Option<Approval>, StoreError> {
        if looked.as_ref().is_none_or(|(id, _)| *id != row.execution) {
            let known = match self.get(tenant, row.execution).await? {
                Some(execution) => Some((execution, self.state(tenant, row.execution).await?)),
                None => None,
            };
            *looked = Some((row.execution, known));
        }
        let Some((_, Some((execution, state)))) = looked else { return Ok(None) };
        let Some(open) = state.open_command(row.id) else { return Ok(None) };
        let Some(ParkReason::Callback(callback)) = open.parked() else { return Ok(None) };
        let setting = |name: &str| open.issued.config.get(name).filter(|said| !said.is_null());
        Ok(Some(Approval {
            execution: execution.clone(),
            command: row.id,
            step: row.step.clone(),
            item: open.issued.item.as_ref().map(|item| item.index),
            message: setting("message").cloned(),
            data: setting("data").cloned(),
            since: open.since,
            until: callback.until,
            token: callback.token.clone(),
        }))
    }

    /// Returns the load of each worker, over all tenants. Excludes commands claimed by the control
    /// plane, which occupy no worker.
    pub async fn load(&self) -> Result<LoadSummary, StoreError> {
        let mut workers: BTreeMap<Arc<str>, WorkerLoad> = BTreeMap::new();
        let (mut reached, mut searched) = (CommandId::new(0), 0);
        let is_whole = loop {
            let page = self.store.open_commands(reached, PAGE).await?;
            let is_last = page.len() < PAGE;
            searched += page.len();
            for row in page {
                reached = row.id;
                let Some(worker) = row.worker.filter(|worker| &**worker != CONTROL_PLANE) else {
                    continue;
                };
                let load = workers.entry(worker.clone()).or_insert(WorkerLoad {
                    worker,
                    held: 0,
                    oldest: row.issued_at,
                });
                load.held += 1;
                load.oldest = load.oldest.min(row.issued_at);
            }
            if is_last || searched >= SEARCHED_MAX {
                break is_last;
            }
        };
        Ok(LoadSummary { workers: workers.into_values().collect(), is_whole })
    }
}
