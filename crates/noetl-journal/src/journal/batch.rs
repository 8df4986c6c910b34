//! A batch being decided: the events that each execution appends, and the callers that wait for
//! them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Decision, ExecutionSummary, Status};
use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Seq, Tenant};
use noetl_store::{Append, ExecutionRow, ExecutionStatus, StartAppend};
use tokio::sync::oneshot;

use super::retry::RetryableInput;
use super::writer::WriterDeps;
use super::{Accepted, SubmitError};
use crate::dispatch::{PendingCommand, WorkerSlot};
use crate::snapshots::{self, PendingSnapshot};
use crate::state_cache::CachedState;
use crate::timer_rows;

/// Caller that waits for the outcome of an input, and the range of the item's events the input led
/// to.
pub(super) struct Reply {
    pub(super) to: oneshot::Sender<Result<Accepted, SubmitError>>,
    pub(super) outcome: Result<Range<usize>, SubmitError>,
    /// Command claimed for the reporting worker.
    pub(super) handed: Option<CommandId>,
    /// Input to decide again if its events are not committed.
    pub(super) retry: Box<RetryableInput>,
}

/// Result of a decision: the range of its events, and the command claimed for the reporting worker.
pub(super) type DecisionResult = (Range<usize>, Option<CommandId>);

impl Reply {
    pub(super) fn new(
        to: oneshot::Sender<Result<Accepted, SubmitError>>,
        led: Result<DecisionResult, SubmitError>,
        retry: Box<RetryableInput>,
    ) -> Self {
        let handed = led.as_ref().ok().and_then(|(_, handed)| *handed);
        Self { to, outcome: led.map(|(events, _)| events), handed, retry }
    }
}

/// Command that this batch claims for the local worker.
pub(super) struct LocalClaim {
    pub(super) waiting: PendingCommand,
    pub(super) slot: WorkerSlot,
    pub(super) issued: Arc<CommandSpec>,
    pub(super) tenant: Tenant,
    /// Whether the command was pending before this batch, so it is enqueued again if the batch
    /// fails.
    pub(super) waited: bool,
}

/// Decisions of one batch for one execution.
pub(super) struct BatchItem {
    pub(super) cached: CachedState,
    expected: Seq,
    after: Option<EventId>,
    start: Option<StartAppend>,
    /// Net change of the decisions so far.
    pub(super) decision: Decision,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// Commands claimed for remote workers that renew by command ID, with the lease duration.
    pub(super) leases: Vec<(CommandId, Duration)>,
}

/// Append of one execution that is not known to be durable. The cached state already includes its
/// events.
pub(super) struct UncommittedItem {
    pub(super) execution: ExecutionId,
    /// Events, effects, and spans of the append. What the store writes was moved into it.
    pub(super) decision: Decision,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// Whether the append creates timers.
    pub(super) has_timers: bool,
    /// Snapshot of the state after these events. Stored once they are committed.
    pub(super) snapshot: Option<PendingSnapshot>,
}

impl BatchItem {
    pub(super) fn new(cached: CachedState, start: Option<StartAppend>) -> Self {
        Self {
            expected: cached.state.version(),
            after: cached.state.last_event(),
            decision: Decision::none(&cached.state),
            cached,
            start,
            replies: Vec::new(),
            claims: Vec::new(),
            leases: Vec::new(),
        }
    }

    /// Returns `true` if nothing has been decided on this state.
    pub(super) fn is_untouched(&self) -> bool {
        self.start.is_none()
            && self.decision.events.is_empty()
            && self.replies.is_empty()
            && self.claims.is_empty()
    }

    /// Adds a decision and returns the range of its events among those of the item.
    pub(super) fn add(&mut self, decision: Decision) -> Range<usize> {
        let from = self.decision.events.len();
        self.decision.merge(decision);
        from..self.decision.events.len()
    }

    /// Returns the empty range of an input that changes nothing.
    pub(super) fn no_events(&self) -> Range<usize> {
        let end = self.decision.events.len();
        end..end
    }

    /// Moves what the store writes into an append. Returns `None` if there are no events.
    fn append(&mut self, parts: &WriterDeps) -> Option<Append> {
        let decision = &mut self.decision;
        if decision.events.is_empty() {
            return None;
        }
        let timers = std::mem::take(&mut decision.timers).into_iter();
        Some(Append {
            expected: self.expected,
            after: self.after,
            start: self.start.take(),
            events: decision.events.clone(),
            row: row(&self.cached, &decision.summary),
            leases: std::mem::take(&mut self.leases),
            commands: std::mem::take(&mut decision.commands),
            due: timers.map(|timer| timer_rows::row(parts.ids.due(), timer)).collect(),
            delivered: Vec::new(),
            blobs: decision.blobs.iter().filter_map(|digest| digest.parse().ok()).collect(),
        })
    }

    /// Splits the item into the state, which returns to the cache, and the work that waits for the
    /// commit.
    fn pend(mut self, has_timers: bool) -> (CachedState, UncommittedItem) {
        let snapshot = snapshots::take(&mut self.cached, self.decision.events.len());
        let state = &self.cached.state;
        // A command that was stopped in the batch that claimed it does not run. Its slot becomes
        // free.
        self.claims.retain(|claim| state.open_command(claim.waiting.command).is_some());
        for reply in &mut self.replies {
            reply.handed = reply.handed.filter(|command| state.open_command(*command).is_some());
        }
        let pending = UncommittedItem {
            execution: state.id(),
            decision: self.decision,
            replies: self.replies,
            claims: self.claims,
            has_timers,
            snapshot,
        };
        (self.cached, pending)
    }
}

impl UncommittedItem {
    /// Sends each caller its outcome.
    pub(super) fn answer(replies: Vec<Reply>, events: &[Arc<Event>]) {
        for reply in replies {
            let Reply { outcome, handed, .. } = reply;
            let outcome = outcome.map(|range| Accepted { events: events[range].to_vec(), handed });
            // A caller that disconnected needs no response: its input is durable.
            let _ = reply.to.send(outcome);
        }
    }

    /// Fails each caller with `error`.
    pub(super) fn refuse(replies: Vec<Reply>, error: &SubmitError) {
        for reply in replies {
            let _ = reply.to.send(Err(error.clone()));
        }
    }
}

/// Items of a batch, in the order in which their executions first occurred.
#[derive(Default)]
pub(super) struct Batch {
    indexes: HashMap<ExecutionId, usize>,
    items: Vec<BatchItem>,
}

impl Batch {
    pub(super) fn get(&mut self, execution: ExecutionId) -> Option<&mut BatchItem> {
        self.indexes.get(&execution).map(|&index| &mut self.items[index])
    }

    pub(super) fn put(&mut self, execution: ExecutionId, item: BatchItem) -> &mut BatchItem {
        let index = self.items.len();
        self.indexes.insert(execution, index);
        self.items.push(item);
        &mut self.items[index]
    }

    /// Splits a decided batch into appends to commit, the work that waits for them with the index
    /// of its append, and the new states.
    pub(super) fn seal(self, parts: &WriterDeps) -> SealedBatch {
        let mut sealed = SealedBatch::default();
        for mut item in self.items {
            let mut has_timers = false;
            let index = item.append(parts).map(|append| {
                has_timers = !append.due.is_empty();
                sealed.appends.push(append);
                sealed.appends.len() - 1
            });
            let (cached, pending) = item.pend(has_timers);
            sealed.pending.push((pending, index));
            sealed.states.push(cached);
        }
        sealed
    }
}

/// A decided batch, split by [`Batch::seal`].
#[derive(Default)]
pub(super) struct SealedBatch {
    pub(super) appends: Vec<Append>,
    pub(super) pending: Vec<(UncommittedItem, Option<usize>)>,
    pub(super) states: Vec<CachedState>,
}

fn row(cached: &CachedState, summary: &ExecutionSummary) -> ExecutionRow {
    let started = cached.state.started().expect("an execution with events has begun");
    ExecutionRow {
        id: cached.state.id(),
        catalog: started.catalog,
        path: started.path.clone(),
        playbook_version: started.version,
        parent: started.parent,
        status: match summary.status {
            Status::Absent | Status::Running => ExecutionStatus::Running,
            Status::Completed => ExecutionStatus::Completed,
            Status::Failed => ExecutionStatus::Failed,
            Status::Cancelled => ExecutionStatus::Cancelled,
        },
        version: summary.version,
        started_at: summary.started_at,
        updated_at: summary.updated_at,
        ended_at: summary.ended_at,
        error: summary.error.clone(),
        steps_entered: summary.steps_entered,
        steps_completed: summary.steps_completed,
        steps_failed: summary.steps_failed,
        steps_running: summary.steps_running,
        current_step: summary.current_step.clone(),
    }
}
