//! Explains why an execution doesn't progress, or why it ended.
//!
//! The engine's state determines the waits; the store adds which workers, leases, and children
//! could resolve them. An execution that has not ended always waits for something.

mod describe;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use noetl_compat as compat;
use noetl_engine::{Execution, PendingWait, WaitKind, pending_waits};
use noetl_identity::LEASES;
use noetl_model::{
    CommandId, Event, EventId, ExecutionId, Fact, FailureKind, Seq, StepOutcome, Tenant, Timestamp,
    Value,
};
use noetl_store::{
    ActiveLease, ExecutionRow, ExecutionStatus, Lease, NewRuntime, RuntimeFilter, RuntimeKind,
    StoreError,
};

use self::describe::describe_wait;
use crate::executions::Executions;
use crate::snapshots;

/// Maximum number of waits that are listed; further ones are only counted.
const NAMED_MAX: usize = 100;

/// Maximum number of events searched, from the latest, for the failure that ended an execution.
const SEARCHED_MAX: u64 = 20_000;

/// Events read at a time.
const PAGE: usize = 1000;

/// Time without a heartbeat after which a worker counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(90);

/// Explanation of an execution's state.
#[derive(Debug, Clone)]
pub struct WhyReport {
    pub row: ExecutionRow,
    /// Whether the execution was imported, so this control plane does not drive it.
    pub is_imported: bool,
    /// Pending waits, at most 100.
    pub waits: Vec<Wait>,
    pub more: usize,
    pub ending: Option<EndReason>,
}

/// A pending wait of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub outstanding: PendingWait,
    pub what: String,
    /// Event that would resolve the wait.
    pub would_move_it: String,
    /// Pool that the command is assigned to.
    pub pool: Option<Arc<str>>,
    /// Available workers that could claim the command.
    pub workers: Vec<String>,
    /// Expiration of the worker's lease.
    pub lease_until: Option<Timestamp>,
    /// Status of the awaited child execution; `None` if it has not started.
    pub child: Option<ExecutionStatus>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndReason {
    pub what: String,
    /// Step whose failure was not handled.
    pub step: Option<Arc<str>>,
    /// Kind of that failure; `None` if the execution did not fail.
    pub kind: Option<FailureKind>,
    /// Message of the failure, or the reason given for a cancellation.
    pub message: Option<String>,
    /// ID and sequence number of the event that ended the execution.
    pub event: Option<(EventId, Seq)>,
}

/// Data about an execution's surroundings.
#[derive(Debug, Default)]
struct Around {
    execution: Option<ExecutionId>,
    pool: Option<Arc<str>>,
    /// Whether the worker in this process accepts commands.
    has_worker: bool,
    /// Registered workers with a heartbeat within [`GONE_AFTER`].
    workers: Vec<Registered>,
    live: Vec<Lease>,
    /// Expiration of remote workers' leases, by command.
    held: HashMap<CommandId, Timestamp>,
    /// Leases that were limited because reports may be lost, with the limit and its cause.
    limited: HashMap<CommandId, (Timestamp, String)>,
    children: HashMap<ExecutionId, ExecutionStatus>,
    /// Reasons why published workers cannot run a pending command.
    lacking: HashMap<CommandId, String>,
    /// Commands whose tool must not run twice.
    once: HashSet<CommandId>,
}

/// A worker, as described by its registration.
#[derive(Debug, Clone)]
struct Registered {
    name: String,
    /// Pool from the worker's registration.
    pool: Option<String>,
    /// Tool kinds from the worker's registration. Published workers send none.
    tools: Option<Vec<String>>,
}

impl Executions {
    /// Returns the explanation of an execution's state, or `None` if the execution does not exist.
    pub async fn why(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<WhyReport>, StoreError> {
        let Some(row) = self.get(tenant, id).await? else { return Ok(None) };
        let mut why =
            WhyReport { row, is_imported: false, waits: Vec::new(), more: 0, ending: None };
        if self.start_event(id).await?.is_none() {
            why.is_imported = true;
            return Ok(Some(why));
        }
        if why.row.status.is_final() {
            why.ending = Some(self.ending(&why.row).await?);
            return Ok(Some(why));
        }
        let state = self.state(tenant, id).await?;
        let mut found = pending_waits(&state);
        why.more = found.len().saturating_sub(NAMED_MAX);
        found.truncate(NAMED_MAX);
        let around = self.around(tenant, &state, &found).await?;
        why.waits = found.into_iter().map(|one| describe_wait(one, &around)).collect();
        // The execution ended between the two reads.
        if state.status().is_final()
            && let Some(row) = self.get(tenant, id).await?
        {
            why.ending = Some(self.ending(&row).await?);
            why.row = row;
        }
        Ok(Some(why))
    }

    /// Returns the state folded from the current log.
    pub(crate) async fn state(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Execution, StoreError> {
        let (mut state, _) = snapshots::restore(&*self.store, tenant, id).await;
        loop {
            let page = self.events(id, state.version(), PAGE).await?;
            page.iter().for_each(|event| state.apply(event));
            if page.len() < PAGE {
                return Ok(state);
            }
        }
    }

    async fn around(
        &self,
        tenant: &Tenant,
        state: &Execution,
        found: &[PendingWait],
    ) -> Result<Around, StoreError> {
        let pool = state.started().and_then(|started| started.pool.clone());
        let mut around = Around {
            execution: Some(state.id()),
            pool,
            has_worker: self.has_worker,
            ..Around::default()
        };
        let has = |which: fn(&WaitKind) -> bool| found.iter().any(|one| which(&one.awaited));
        if has(|awaited| matches!(awaited, WaitKind::Worker { .. })) {
            let filter =
                RuntimeFilter { kind: Some(RuntimeKind::WorkerPool), ..RuntimeFilter::default() };
            let now = self.clock.now();
            let known = self.store.runtimes(tenant, &filter).await?;
            let is_there = |at: Timestamp| now.since(at) < GONE_AFTER;
            let there = known.into_iter().filter(|worker| is_there(worker.heartbeat));
            around.workers = there.map(|worker| registered(worker.said)).collect();
        }
        for one in found.iter().filter(|one| matches!(one.awaited, WaitKind::Worker { .. })) {
            let open = one.command.and_then(|command| state.open_command(command));
            if let (Some(command), Some(open)) = (one.command, open) {
                let lacking = compat::unsupported_reason(&open.issued);
                around.lacking.extend(lacking.map(|why| (command, why)));
            }
        }
        if has(|awaited| matches!(awaited, WaitKind::Report { .. })) {
            around.live = self.store.live(LEASES).await?;
            let commands: Vec<CommandId> = found.iter().filter_map(reported).collect();
            let is_once = |command: &&CommandId| {
                state.open_command(**command).is_some_and(|open| !open.issued.idempotent)
            };
            around.once = commands.iter().filter(is_once).copied().collect();
            let held = self.store.held(&commands).await?;
            let limited = |held: &ActiveLease| {
                let at_most = held.at_most?;
                Some((held.id, (at_most, self.lost.cause(at_most)?)))
            };
            around.limited = held.iter().filter_map(limited).collect();
            around.held = held.into_iter().map(|held| (held.id, held.until)).collect();
        }
        for one in found {
            if let WaitKind::Child { execution, .. } = one.awaited
                && let Some(child) = self.get(tenant, execution).await?
            {
                around.children.insert(execution, child.status);
            }
        }
        Ok(around)
    }

    /// Returns the first unhandled failure, or the event that ended the execution otherwise.
    async fn ending(&self, row: &ExecutionRow) -> Result<EndReason, StoreError> {
        let mut end = None;
        let mut failed = None;
        let mut to = row.version.0;
        let oldest = to.saturating_sub(SEARCHED_MAX);
        while to > oldest {
            let from = to.saturating_sub(PAGE as u64).max(oldest);
            let size = usize::try_from(to - from).unwrap_or(PAGE);
            let page = self.events(row.id, Seq(from), size).await?;
            for event in page.into_iter().rev() {
                if event.fact.is_end() {
                    end = Some(event);
                } else if is_unhandled(&event) {
                    failed = Some(event);
                }
            }
            // The end event suffices unless the execution failed.
            let needs_more = end.is_none() || row.status == ExecutionStatus::Failed;
            if !needs_more {
                break;
            }
            to = from;
        }
        Ok(ended(row, end.as_ref(), failed.as_ref()))
    }
}

fn registered(said: NewRuntime) -> Registered {
    let label = said.labels.as_ref().and_then(|labels| labels.get("pool_name"));
    let pool = label.and_then(Value::as_str).filter(|pool| !pool.is_empty()).map(str::to_owned);
    let tools = said.capabilities.as_ref().and_then(|capabilities| capabilities.get("tools"));
    let names =
        |tools: &Vec<Value>| tools.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let tools = tools.and_then(Value::as_array).map(names);
    Registered { name: said.name, pool, tools }
}

/// Returns the command whose worker has to report.
fn reported(one: &PendingWait) -> Option<CommandId> {
    one.command.filter(|_| matches!(one.awaited, WaitKind::Report { .. }))
}

fn is_unhandled(event: &Event) -> bool {
    let unhandled =
        |outcome: &StepOutcome| matches!(outcome, StepOutcome::Failed { handled: false, .. });
    matches!(&event.fact, Fact::StepExited { outcome, .. } if unhandled(outcome))
}

fn ended(row: &ExecutionRow, end: Option<&Event>, failed: Option<&Event>) -> EndReason {
    let at = |event: &Event| (event.id, event.seq);
    if row.status == ExecutionStatus::Failed
        && let Some(event) = failed
        && let Fact::StepExited { step, outcome: StepOutcome::Failed { failure, .. }, .. } =
            &event.fact
    {
        return EndReason {
            what: format!("step '{step}' failed and nothing handled it: {failure}"),
            step: Some(step.clone()),
            kind: Some(failure.kind.clone()),
            message: Some(failure.message.clone()),
            event: Some(at(event)),
        };
    }
    let plain = |what: String| EndReason {
        what,
        step: None,
        kind: None,
        message: row.error.clone(),
        event: end.map(at),
    };
    match end.map(|event| &event.fact) {
        Some(Fact::PlaybookFailed { step, failure }) => EndReason {
            step: Some(step.clone()),
            kind: Some(failure.kind.clone()),
            message: Some(failure.message.clone()),
            ..plain(format!("it failed while step '{step}' was the last one entered: {failure}"))
        },
        Some(Fact::PlaybookCancelled { reason: Some(reason) }) => {
            plain(format!("it was cancelled: {reason}"))
        }
        Some(Fact::PlaybookCancelled { reason: None }) => {
            plain("it was cancelled, and no reason was given".to_owned())
        }
        Some(Fact::PlaybookCompleted { .. }) => {
            plain("it completed: nothing was left to do".to_owned())
        }
        _ => plain(format!("it is {}, and its end is not in the log", row.status.as_str())),
    }
}
