//! Executions that begin with the past of another.

use std::sync::Arc;

use noetl_engine::fork::{
    FORK_BYTES_MAX, FORK_EVENTS_MAX, Misfit, before_failure, before_step, event_bytes, misfit,
    steps_entered,
};
use noetl_engine::{Fork, Input};
use noetl_model::event::{ForkedFrom, Started as Beginning};
use noetl_model::{CommandId, Event, EventId, ExecutionId, Fact, Map, Seq, Tenant};
use noetl_store::{CatalogEntry, ExecutionRow, ExecutionStatus, StoreError};

use super::{Executions, StartError, StartRequest, Started};
use crate::traces::TraceOf;

/// Events read at a time.
const PAGE: usize = 1000;

/// Which version of its playbook an execution goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkVersion {
    /// The one the other had.
    #[default]
    Same,
    /// The newest of its path.
    Newest,
    Number(u32),
}

/// From where to go on.
#[derive(Debug, Clone, Default)]
pub struct ForkRequest {
    /// The last event to take over, by its id or by its place in the log; the newest when `None`.
    pub at: Option<i64>,
    /// Laid over the workload.
    pub workload: Map,
    /// The trace the new one belongs to.
    pub trace: TraceOf,
    /// The version of the playbook to go on with.
    pub version: ForkVersion,
}

/// What to try again.
#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// The step to go back to, as it was entered last; what failed when `None`.
    pub from: Option<String>,
    /// Laid over the workload.
    pub workload: Map,
    /// The trace the new one belongs to.
    pub trace: TraceOf,
    /// The version of the playbook to go on with.
    pub version: ForkVersion,
}

/// An execution that begins with the past of another.
#[derive(Debug, Clone)]
pub struct Forked {
    pub started: Started,
    /// What it has from the other.
    pub from: ForkedFrom,
}

/// Why nothing was begun.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// There is no such execution.
    #[error("Execution not found: {0}")]
    NotFound(ExecutionId),
    /// It was not run here.
    #[error("execution {0} was imported, and nothing here can go on with it")]
    Imported(ExecutionId),
    /// No event of it has this id or place.
    #[error("the log of execution {execution} has no event {at}; its places are 1 to {last}")]
    NoEvent {
        execution: ExecutionId,
        /// What was asked for.
        at: i64,
        /// The last place of its log.
        last: Seq,
    },
    /// It never came to the step.
    #[error("step '{step}' was never entered; these were: {}", .entered.join(", "))]
    NoStep { step: String, entered: Vec<String> },
    /// It is not over.
    #[error("execution {0} still runs; cancel it first, or fork it")]
    Running(ExecutionId),
    /// There is nothing to try again.
    #[error("execution {0} completed; say which step to go back to with `from`")]
    Completed(ExecutionId),
    /// Its past is too long to be taken over.
    #[error(
        "the past of execution {0} is longer than what another can begin with \
         ({FORK_EVENTS_MAX} events or 64 MiB); run it again instead"
    )]
    TooLong(ExecutionId),
    /// What is under way there has no place in the version.
    #[error(
        "version {version} cannot go on with it: {misfit}; fork at another event, or run it again"
    )]
    Unfit {
        version: u32,
        /// What has no place.
        misfit: Misfit,
    },
    /// The other was not started.
    #[error("the execution was not started")]
    Start(#[source] StartError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// What a fork and a retry have in common.
struct Wish {
    workload: Map,
    trace: TraceOf,
    version: ForkVersion,
}

/// How many commands are under way after these events: not those that were taken over.
pub(super) fn handed_out(events: &[Arc<Event>]) -> usize {
    let mut open: Vec<CommandId> = Vec::new();
    for event in events {
        match &event.fact {
            Fact::CommandIssued(_) => open.push(event.id.into()),
            Fact::CommandCompleted { command, .. }
            | Fact::CommandFailed { command, .. }
            | Fact::CommandExpired { command, .. }
            | Fact::CommandCancelled { command, .. } => open.retain(|known| known != command),
            _ => {}
        }
    }
    open.len()
}

impl Executions {
    /// Begins an execution with the past of another, up to an event; what was under way there is
    /// handed out anew. The other is left as it is. When the event is in the middle of a decision,
    /// it goes on from before that decision.
    pub async fn fork(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        request: ForkRequest,
    ) -> Result<Forked, ForkError> {
        let row = self.known(tenant, id).await?;
        let ForkRequest { at, workload, trace, version } = request;
        let wish = Wish { workload, trace, version };
        let cut = self.place(&row, at).await?;
        // One more tells whether what comes next belongs to the last one.
        let log = self.past(id, cut.next()).await?;
        self.begin_with(tenant, log, cut, wish).await
    }

    /// Tries again what an execution failed of, or goes back to a step, as a new execution.
    pub async fn retry(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        request: RetryRequest,
    ) -> Result<Forked, ForkError> {
        let row = self.known(tenant, id).await?;
        let RetryRequest { from, workload, trace, version } = request;
        let wish = Wish { workload, trace, version };
        match (row.status, &from) {
            (ExecutionStatus::Running, _) => return Err(ForkError::Running(id)),
            (ExecutionStatus::Completed, None) => return Err(ForkError::Completed(id)),
            (ExecutionStatus::Completed, Some(_))
            | (ExecutionStatus::Failed | ExecutionStatus::Cancelled, _) => {}
        }
        let log = self.past(id, row.version).await?;
        let cut = match from {
            None => before_failure(&log).ok_or(ForkError::Imported(id))?,
            Some(step) => before_step(&log, &step).ok_or_else(|| ForkError::NoStep {
                step,
                entered: steps_entered(&log).iter().map(ToString::to_string).collect(),
            })?,
        };
        self.begin_with(tenant, log, cut, wish).await
    }

    async fn known(&self, tenant: &Tenant, id: ExecutionId) -> Result<ExecutionRow, ForkError> {
        let row = self.get(tenant, id).await.map_err(ForkError::Store)?;
        row.ok_or(ForkError::NotFound(id))
    }

    /// The place a caller means. Ids are far larger than any place.
    async fn place(&self, row: &ExecutionRow, at: Option<i64>) -> Result<Seq, ForkError> {
        let Some(at) = at else { return Ok(row.version) };
        let missing = || ForkError::NoEvent { execution: row.id, at, last: row.version };
        match u64::try_from(at) {
            Err(_) => Err(missing()),
            Ok(place) if place <= row.version.0 => Ok(Seq(place)),
            Ok(_) => {
                let found = self.store.find_event(row.id, EventId::new(at)).await;
                found.map_err(ForkError::Store)?.ok_or_else(missing)
            }
        }
    }

    /// The events of a log up to a place.
    async fn past(&self, id: ExecutionId, until: Seq) -> Result<Vec<Event>, ForkError> {
        let mut log: Vec<Event> = Vec::new();
        let mut bytes = 0;
        let mut after = Seq::START;
        while after < until {
            let left = usize::try_from(until.0 - after.0).unwrap_or(usize::MAX);
            let page = self.events(id, after, left.min(PAGE)).await.map_err(ForkError::Store)?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            bytes += page.iter().map(event_bytes).sum::<usize>();
            log.extend(page);
            if log.len() > FORK_EVENTS_MAX || bytes > FORK_BYTES_MAX {
                return Err(ForkError::TooLong(id));
            }
        }
        if !matches!(log.first().map(|event| &event.fact), Some(Fact::PlaybookStarted(_))) {
            return Err(ForkError::Imported(id));
        }
        Ok(log)
    }

    async fn begin_with(
        &self,
        tenant: &Tenant,
        log: Vec<Event>,
        cut: Seq,
        wish: Wish,
    ) -> Result<Forked, ForkError> {
        let Some(Event { execution, fact: Fact::PlaybookStarted(began), .. }) = log.first() else {
            return Err(ForkError::Start(StartError::Unnamed));
        };
        let origin = *execution;
        let Wish { mut workload, trace, version } = wish;
        self.clean(tenant, &mut workload);
        let other = match version {
            ForkVersion::Same => None,
            ForkVersion::Newest => self.other(tenant, began, None).await?,
            ForkVersion::Number(number) => self.other(tenant, began, Some(number)).await?,
        };
        let (playbook, version) = match other {
            None => (self.playbook(tenant, began.catalog).await.map_err(ForkError::Start)?, None),
            Some(entry) => {
                let (id, version) = (entry.id, entry.version);
                let playbook = self.catalog.compile(entry).await;
                let playbook = playbook.map_err(StartError::Playbook).map_err(ForkError::Start)?;
                if let Some(misfit) = misfit(&playbook, &log, cut) {
                    return Err(ForkError::Unfit { version, misfit });
                }
                (playbook, Some((id, version)))
            }
        };
        let trace = self.trace_of(tenant, trace, None).await.map_err(ForkError::Store)?;
        let fork =
            Fork { log: Arc::from(log), cut, workload, trace, version, actor: self.actor.clone() };
        let input = Input::Fork(Box::new(fork));
        let started = self.begin(tenant, &playbook, &input, Some(origin)).await;
        let started = started.map_err(ForkError::Start)?;
        // It has begun, so that it must not be answered as a failure: that would be asked for again.
        let began = self.beginning(started.execution).await.unwrap_or_default();
        let from = began.and_then(|began| began.forked).unwrap_or(ForkedFrom {
            execution: origin,
            seq: cut,
            event: EventId::new(0),
        });
        Ok(Forked { started, from })
    }

    /// Another version of the playbook an execution began with; none when it is the same.
    async fn other(
        &self,
        tenant: &Tenant,
        began: &Beginning,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, ForkError> {
        let path = Some(began.path.to_string());
        let request = StartRequest { path, version, ..StartRequest::default() };
        let entry = self.find(tenant, &request).await.map_err(ForkError::Start)?;
        Ok(Some(entry).filter(|entry| entry.id != began.catalog))
    }
}
