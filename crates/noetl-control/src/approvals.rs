//! What is open across executions: steps that wait for a person, and what workers hold.
//!
//! Both walk the open commands, whose index holds nothing that is over. A walk is bounded and says where
//! it stopped, so that a control plane with very much under way still answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_engine::Execution;
use noetl_model::event::Parked;
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{CommandRow, ExecutionRow, StoreError};

use crate::executions::Executions;

/// Commands looked at for one answer: some milliseconds of work.
const SEARCHED_MAX: usize = 20_000;

/// Commands read at a time.
const PAGE: usize = 1000;

/// The tool that asks a person.
const APPROVAL: &str = "approval";

/// A step that waits for a person's word.
#[derive(Debug, Clone)]
pub struct Approval {
    pub execution: ExecutionRow,
    pub command: CommandId,
    pub step: Arc<str>,
    /// The place of its item in a loop.
    pub item: Option<u32>,
    /// What is to be decided.
    pub message: Option<Value>,
    /// What whoever decides should see.
    pub data: Option<Value>,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it stops waiting.
    pub until: Timestamp,
    /// What an answer has to carry.
    pub token: Arc<str>,
}

/// Steps that wait, oldest first.
#[derive(Debug, Default)]
pub struct Approvals {
    pub found: Vec<Approval>,
    /// After which command to go on looking; nothing when all was looked at.
    pub next: Option<CommandId>,
}

/// What one worker has in its hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLoad {
    pub worker: Arc<str>,
    /// How many commands it holds.
    pub held: u64,
    /// When the oldest of them was issued.
    pub oldest: Timestamp,
}

#[derive(Debug, Default)]
pub struct Load {
    /// One for each worker that holds something, by name.
    pub workers: Vec<WorkerLoad>,
    /// Whether everything that is open was looked at; else there is more than is counted.
    pub is_whole: bool,
}

/// The execution that was looked at last: those of one loop come one after another.
type Looked = Option<(ExecutionId, Option<(ExecutionRow, Execution)>)>;

impl Executions {
    /// Steps of a tenant that wait for a person, from behind a command on.
    pub async fn approvals(
        &self,
        tenant: &Tenant,
        after: CommandId,
        limit: usize,
    ) -> Result<Approvals, StoreError> {
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
                    return Ok(Approvals { found, next: Some(reached) });
                }
            }
            if is_last {
                return Ok(Approvals { found, next: None });
            }
            if searched >= SEARCHED_MAX {
                return Ok(Approvals { found, next: Some(reached) });
            }
        }
    }

    /// One of them, unless it is another tenant's or was answered meanwhile.
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
        let Some(Parked::Callback(callback)) = open.parked() else { return Ok(None) };
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

    /// What workers hold, of every tenant. What the control plane does itself takes nobody's place.
    pub async fn load(&self) -> Result<Load, StoreError> {
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
        Ok(Load { workers: workers.into_values().collect(), is_whole })
    }
}
