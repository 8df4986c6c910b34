//! Starts executions with a copy of another execution's event log.

use std::sync::Arc;

use noetl_engine::fork::{
    FORK_BYTES_MAX, FORK_EVENTS_MAX, Incompatibility, event_bytes, first_incompatibility,
    seq_before_failure, seq_before_step, steps_entered,
};
use noetl_engine::{Fork, Input};
use noetl_model::event::{ExecutionStart as Beginning, ForkedFrom};
use noetl_model::{CommandId, Event, EventId, ExecutionId, Fact, Map, Seq, Tenant};
use noetl_store::{CatalogEntry, ExecutionRow, ExecutionStatus, StoreError};

use super::{Executions, StartError, StartRequest, StartedExecution};
use crate::traces::TraceParent;

/// Events read at a time.
const PAGE: usize = 1000;

/// Playbook version that a fork continues with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkVersion {
    /// Version of the original execution.
    #[default]
    Same,
    /// Newest version at the same path.
    Newest,
    Number(u32),
}

/// Point and settings of a fork.
#[derive(Debug, Clone, Default)]
pub struct ForkRequest {
    /// Last event to copy, by event ID or sequence number. `None` selects the newest.
    pub at: Option<i64>,
    /// Values merged over the workload.
    pub workload: Map,
    /// Trace the new execution belongs to.
    pub trace: TraceParent,
    /// Playbook version to continue with.
    pub version: ForkVersion,
}

/// Point and settings of a retry.
#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// Step to return to, as of its last run. `None` returns to the failure.
    pub from: Option<String>,
    /// Values merged over the workload.
    pub workload: Map,
    /// Trace the new execution belongs to.
    pub trace: TraceParent,
    /// Playbook version to continue with.
    pub version: ForkVersion,
}

/// Execution started with a copy of another's event log.
#[derive(Debug, Clone)]
pub struct Forked {
    pub started: StartedExecution,
    /// Original execution, and the last event copied from it.
    pub from: ForkedFrom,
}

/// Errors of forking, retrying, and rerunning an execution.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The execution does not exist.
    #[error("Execution not found: {0}")]
    NotFound(ExecutionId),
    /// The execution was imported, so it has no start to continue from.
    #[error("execution {0} was imported and cannot be forked")]
    Imported(ExecutionId),
    /// The log has no event with this ID or sequence number.
    #[error("the log of execution {execution} has no event {at}; sequence numbers are 1 to {last}")]
    NoEvent {
        execution: ExecutionId,
        /// Requested event ID or sequence number.
        at: i64,
        /// Last sequence number of the log.
        last: Seq,
    },
    /// The step was never entered.
    #[error("step '{step}' was never entered; these were: {}", .entered.join(", "))]
    NoStep { step: String, entered: Vec<String> },
    /// The execution has not ended.
    #[error("execution {0} is running; cancel or fork the execution instead")]
    Running(ExecutionId),
    /// The execution completed, so there is no failure to retry.
    #[error("execution {0} completed; say which step to go back to with `from`")]
    Completed(ExecutionId),
    /// The log is too long to copy.
    #[error(
        "the log of execution {0} is too long to copy; the limit is {FORK_EVENTS_MAX} events or \
         64 MiB; rerun the execution instead"
    )]
    TooLong(ExecutionId),
    /// The playbook version cannot continue the work in flight.
    #[error(
        "version {version} cannot continue the execution: {misfit}; fork at another event, or rerun the execution"
    )]
    Unfit {
        version: u32,
        /// Incompatible element of the state.
        misfit: Incompatibility,
    },
    /// The new execution was not started.
    #[error("the execution was not started")]
    Start(#[source] StartError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Settings common to forks and retries.
struct Wish {
    workload: Map,
    trace: TraceParent,
    version: ForkVersion,
}

/// Returns the number of commands that are open after the events of a fork. Commands that ended in
/// the original log do not count, although their events are copied.
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
    /// Starts an execution with a copy of another's event log up to an event. Commands in flight at
    /// that point are issued again. The original execution is not changed. If the event is in the
    /// middle of a decision, the copy ends before that decision.
    pub async fn fork(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        request: ForkRequest,
    ) -> Result<Forked, ForkError> {
        let row = self.known(tenant, id).await?;
        let ForkRequest { at, workload, trace, version } = request;
        let wish = Wish { workload, trace, version };
        let cut = self.seq_at(&row, at).await?;
        // One more event shows whether the cut is in the middle of a decision.
        let log = self.past(id, cut.next()).await?;
        self.begin_with(tenant, log, cut, wish).await
    }

    /// Retries the failure of an execution, or returns to one of its steps, as a new execution.
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
            None => seq_before_failure(&log).ok_or(ForkError::Imported(id))?,
            Some(step) => seq_before_step(&log, &step).ok_or_else(|| ForkError::NoStep {
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

    /// Returns the sequence number that `at` refers to. Event IDs are far larger than any sequence
    /// number.
    async fn seq_at(&self, row: &ExecutionRow, at: Option<i64>) -> Result<Seq, ForkError> {
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

    /// Returns the events of a log up to and including `until`.
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
                if let Some(misfit) = first_incompatibility(&playbook, &log, cut) {
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
        // The execution has started, so an error here must not fail the call: the caller would
        // start it again.
        let began = self.start_event(started.execution).await.unwrap_or_default();
        let from = began.and_then(|began| began.forked).unwrap_or(ForkedFrom {
            execution: origin,
            seq: cut,
            event: EventId::new(0),
        });
        Ok(Forked { started, from })
    }

    /// Returns another version of the playbook an execution started with, or `None` if it is the
    /// same.
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
