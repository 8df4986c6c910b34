//! Why an execution does not move, or why it ended.
//!
//! What it waits for follows from the engine's state; who could move it is looked up beside it. An
//! execution that is not over always waits for something.

mod words;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Awaited, Execution, Outstanding, outstanding};
use noetl_model::{
    CommandId, Event, EventId, ExecutionId, Fact, FailureKind, Outcome, Seq, Tenant, Timestamp,
    Value,
};
use noetl_store::{
    ExecutionRow, ExecutionStatus, HeldCommand, Lease, NewRuntime, RuntimeFilter, RuntimeKind,
    StoreError,
};

use self::words::explained;
use crate::executions::Executions;
use crate::identity::LEASES;
use crate::lower;
use crate::snapshots;

/// How many things are named; the rest is counted.
const NAMED_MAX: usize = 100;

/// How many events are searched for the failure that ended an execution, newest first.
const SEARCHED_MAX: u64 = 20_000;

/// Events read at a time.
const PAGE: usize = 1000;

/// After how long without a heartbeat a worker counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(90);

/// Why an execution stands as it does.
#[derive(Debug, Clone)]
pub struct Why {
    pub row: ExecutionRow,
    /// Whether it was imported, so that nothing here drives it.
    pub is_imported: bool,
    /// What it waits for.
    pub waits: Vec<Wait>,
    /// How many more things it waits for.
    pub more: usize,
    pub ending: Option<Ending>,
}

/// One thing an execution waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub outstanding: Outstanding,
    /// In one sentence.
    pub what: String,
    /// What would move it.
    pub would_move_it: String,
    /// The workers its command goes to.
    pub pool: Option<Arc<str>>,
    /// Workers that are there and could take it.
    pub workers: Vec<String>,
    /// Until when its worker is certainly there.
    pub lease_until: Option<Timestamp>,
    /// How the execution it waits for stands; unknown while that is not started.
    pub child: Option<ExecutionStatus>,
}

/// Why an execution ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// In one sentence.
    pub what: String,
    /// The step whose failure nobody handled.
    pub step: Option<Arc<str>>,
    /// What kind of failure.
    pub kind: Option<FailureKind>,
    /// The failure's own sentence, or the reason that was given.
    pub message: Option<String>,
    /// The event that says so.
    pub event: Option<(EventId, Seq)>,
}

/// What is known around an execution.
#[derive(Debug, Default)]
struct Around {
    execution: Option<ExecutionId>,
    pool: Option<Arc<str>>,
    /// Whether a worker in this process takes commands.
    has_worker: bool,
    /// Workers that registered and were heard of lately.
    workers: Vec<Registered>,
    live: Vec<Lease>,
    /// When the leases of workers elsewhere end.
    held: HashMap<CommandId, Timestamp>,
    /// Leases with an earlier limit because reports may be lost: the limit, and the cause.
    limited: HashMap<CommandId, (Timestamp, String)>,
    children: HashMap<ExecutionId, ExecutionStatus>,
    /// Why published workers cannot run a command that waits.
    lacking: HashMap<CommandId, String>,
    /// Commands whose tool may not run twice.
    once: HashSet<CommandId>,
}

/// A worker that registered.
#[derive(Debug, Clone)]
struct Registered {
    name: String,
    /// The pool it says it is of.
    pool: Option<String>,
    /// Kinds of tools it says it has. Published workers say nothing.
    tools: Option<Vec<String>>,
}

impl Executions {
    /// Why an execution stands as it does; nothing when it is not known.
    pub async fn why(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Why>, StoreError> {
        let Some(row) = self.get(tenant, id).await? else { return Ok(None) };
        let mut why = Why { row, is_imported: false, waits: Vec::new(), more: 0, ending: None };
        if self.beginning(id).await?.is_none() {
            why.is_imported = true;
            return Ok(Some(why));
        }
        if why.row.status.is_final() {
            why.ending = Some(self.ending(&why.row).await?);
            return Ok(Some(why));
        }
        let state = self.state(tenant, id).await?;
        let mut found = outstanding(&state);
        why.more = found.len().saturating_sub(NAMED_MAX);
        found.truncate(NAMED_MAX);
        let around = self.around(tenant, &state, &found).await?;
        why.waits = found.into_iter().map(|one| explained(one, &around)).collect();
        // It ended between the two looks.
        if state.status().is_final()
            && let Some(row) = self.get(tenant, id).await?
        {
            why.ending = Some(self.ending(&row).await?);
            why.row = row;
        }
        Ok(Some(why))
    }

    /// The state as the log is now.
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
        found: &[Outstanding],
    ) -> Result<Around, StoreError> {
        let pool = state.started().and_then(|started| started.pool.clone());
        let mut around = Around {
            execution: Some(state.id()),
            pool,
            has_worker: self.has_worker,
            ..Around::default()
        };
        let has = |which: fn(&Awaited) -> bool| found.iter().any(|one| which(&one.awaited));
        if has(|awaited| matches!(awaited, Awaited::Worker { .. })) {
            let filter =
                RuntimeFilter { kind: Some(RuntimeKind::WorkerPool), ..RuntimeFilter::default() };
            let now = self.clock.now();
            let known = self.store.runtimes(tenant, &filter).await?;
            let is_there = |at: Timestamp| now.since(at) < GONE_AFTER;
            let there = known.into_iter().filter(|worker| is_there(worker.heartbeat));
            around.workers = there.map(|worker| registered(worker.said)).collect();
        }
        for one in found.iter().filter(|one| matches!(one.awaited, Awaited::Worker { .. })) {
            let open = one.command.and_then(|command| state.open_command(command));
            if let (Some(command), Some(open)) = (one.command, open) {
                let lacking = lower::lacking(&open.issued);
                around.lacking.extend(lacking.map(|why| (command, why)));
            }
        }
        if has(|awaited| matches!(awaited, Awaited::Report { .. })) {
            around.live = self.store.live(LEASES).await?;
            let commands: Vec<CommandId> = found.iter().filter_map(reported).collect();
            let is_once = |command: &&CommandId| {
                state.open_command(**command).is_some_and(|open| !open.issued.idempotent)
            };
            around.once = commands.iter().filter(is_once).copied().collect();
            let held = self.store.held(&commands).await?;
            let limited = |held: &HeldCommand| {
                let at_most = held.at_most?;
                Some((held.id, (at_most, self.lost.cause(at_most)?)))
            };
            around.limited = held.iter().filter_map(limited).collect();
            around.held = held.into_iter().map(|held| (held.id, held.until)).collect();
        }
        for one in found {
            if let Awaited::Child { execution, .. } = one.awaited
                && let Some(child) = self.get(tenant, execution).await?
            {
                around.children.insert(execution, child.status);
            }
        }
        Ok(around)
    }

    /// The first failure nobody handled, or how else it ended.
    async fn ending(&self, row: &ExecutionRow) -> Result<Ending, StoreError> {
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
            // One that ended well, or was stopped, is told by its end.
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

/// The command whose worker is to report.
fn reported(one: &Outstanding) -> Option<CommandId> {
    one.command.filter(|_| matches!(one.awaited, Awaited::Report { .. }))
}

fn is_unhandled(event: &Event) -> bool {
    let unhandled = |outcome: &Outcome| matches!(outcome, Outcome::Failed { handled: false, .. });
    matches!(&event.fact, Fact::StepExited { outcome, .. } if unhandled(outcome))
}

fn ended(row: &ExecutionRow, end: Option<&Event>, failed: Option<&Event>) -> Ending {
    let at = |event: &Event| (event.id, event.seq);
    if row.status == ExecutionStatus::Failed
        && let Some(event) = failed
        && let Fact::StepExited { step, outcome: Outcome::Failed { failure, .. }, .. } = &event.fact
    {
        return Ending {
            what: format!("step '{step}' failed and nothing handled it: {failure}"),
            step: Some(step.clone()),
            kind: Some(failure.kind.clone()),
            message: Some(failure.message.clone()),
            event: Some(at(event)),
        };
    }
    let plain = |what: String| Ending {
        what,
        step: None,
        kind: None,
        message: row.error.clone(),
        event: end.map(at),
    };
    match end.map(|event| &event.fact) {
        Some(Fact::PlaybookFailed { step, failure }) => Ending {
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
