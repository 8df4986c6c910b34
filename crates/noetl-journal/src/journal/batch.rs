//! A batch being decided: the events that each execution appends, and the callers that wait for
//! them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Effect, Status, effects_of, timers_of};
use noetl_model::event::CommandSpec;
use noetl_model::trace::Span;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Seq, Tenant};
use noetl_results as results;
use noetl_store::{Append, ExecutionRow, ExecutionStatus, NewTimer, StartAppend};
use tokio::sync::oneshot;

use super::retry::RetryableInput;
use super::writer::{STOP_GRACE, WriterDeps};
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
    pub(super) again: Box<RetryableInput>,
}

/// Result of a decision: the range of its events, and the command claimed for the reporting worker.
pub(super) type DecisionResult = (Range<usize>, Option<CommandId>);

impl Reply {
    pub(super) fn new(
        to: oneshot::Sender<Result<Accepted, SubmitError>>,
        led: Result<DecisionResult, SubmitError>,
        again: Box<RetryableInput>,
    ) -> Self {
        let handed = led.as_ref().ok().and_then(|(_, handed)| *handed);
        Self { to, outcome: led.map(|(events, _)| events), handed, again }
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
    was_failing: bool,
    /// Whether the append creates timers.
    has_due: bool,
    start: Option<StartAppend>,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// Commands claimed for remote workers that renew by command ID, with the lease duration.
    pub(super) leases: Vec<(CommandId, Duration)>,
    /// Trace spans that end with these events.
    pub(super) spans: Vec<Span>,
}

/// Append of one execution that is not known to be durable. The cached state already includes its
/// events.
pub(super) struct UncommittedItem {
    pub(super) execution: ExecutionId,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) effects: Vec<Effect>,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// Sequence number of the last event in the log once the append is committed.
    pub(super) version: Seq,
    /// Whether the append creates timers.
    pub(super) has_due: bool,
    /// Snapshot of the state after these events. Stored once they are committed.
    pub(super) snapshot: Option<PendingSnapshot>,
    /// Trace spans that end with these events. Exported once they are committed.
    pub(super) spans: Vec<Span>,
}

impl BatchItem {
    pub(super) fn new(cached: CachedState, start: Option<StartAppend>) -> Self {
        Self {
            expected: cached.state.version(),
            after: cached.state.last_event(),
            was_failing: cached.state.is_failing(),
            cached,
            has_due: false,
            start,
            events: Vec::new(),
            replies: Vec::new(),
            claims: Vec::new(),
            leases: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// Returns `true` if nothing has been decided on this state.
    pub(super) fn is_untouched(&self) -> bool {
        self.start.is_none()
            && self.events.is_empty()
            && self.replies.is_empty()
            && self.claims.is_empty()
    }

    /// Adds the events of one decision and returns their range in `events`.
    pub(super) fn add(&mut self, events: Vec<Event>) -> Range<usize> {
        let from = self.events.len();
        self.events.extend(events.into_iter().map(Arc::new));
        from..self.events.len()
    }

    fn append(&mut self, parts: &WriterDeps) -> Option<Append> {
        if self.events.is_empty() {
            return None;
        }
        let state = &self.cached.state;
        let playbook = &self.cached.playbook;
        let mut due: Vec<NewTimer> =
            timers_of(state, |what| parts.notify.has_recipient(playbook, what), &self.events)
                .into_iter()
                .map(|wish| timer_rows::row(parts.ids.due(), wish))
                .collect();
        if state.is_failing() && !self.was_failing {
            let at = parts.clock.now().plus(STOP_GRACE);
            due.push(timer_rows::abandon(parts.ids.due(), state.id(), at));
        }
        self.has_due = !due.is_empty();
        Some(Append {
            expected: self.expected,
            after: self.after,
            start: self.start.take(),
            events: self.events.clone(),
            row: row(&self.cached),
            leases: std::mem::take(&mut self.leases),
            due,
            delivered: Vec::new(),
            blobs: self.events.iter().filter_map(|event| results::refers_to(event)).collect(),
        })
    }

    /// Splits the item into the state, which returns to the cache, and the work that waits for the
    /// commit.
    fn pend(mut self) -> (CachedState, UncommittedItem) {
        let snapshot = snapshots::take(&mut self.cached, self.events.len());
        let state = &self.cached.state;
        // A command that was stopped in the batch that claimed it does not run. Its slot becomes
        // free.
        self.claims.retain(|claim| state.open_command(claim.waiting.command).is_some());
        for reply in &mut self.replies {
            reply.handed = reply.handed.filter(|command| state.open_command(*command).is_some());
        }
        let pending = UncommittedItem {
            execution: state.id(),
            effects: effects_of(state, &self.events),
            events: self.events,
            replies: self.replies,
            claims: self.claims,
            version: state.version(),
            has_due: self.has_due,
            snapshot,
            spans: self.spans,
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
    places: HashMap<ExecutionId, usize>,
    items: Vec<BatchItem>,
}

impl Batch {
    pub(super) fn get(&mut self, execution: ExecutionId) -> Option<&mut BatchItem> {
        self.places.get(&execution).map(|&place| &mut self.items[place])
    }

    pub(super) fn put(&mut self, execution: ExecutionId, item: BatchItem) -> &mut BatchItem {
        let place = self.items.len();
        self.places.insert(execution, place);
        self.items.push(item);
        &mut self.items[place]
    }

    /// Splits a decided batch into appends to commit, the work that waits for them with the index
    /// of its append, and the new states.
    pub(super) fn seal(self, parts: &WriterDeps) -> SealedBatch {
        let mut sealed = SealedBatch::default();
        for mut item in self.items {
            let place = item.append(parts).map(|append| {
                sealed.appends.push(append);
                sealed.appends.len() - 1
            });
            let (cached, pending) = item.pend();
            sealed.pending.push((pending, place));
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

fn row(cached: &CachedState) -> ExecutionRow {
    let summary = cached.state.summary();
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
        error: summary.error,
        steps_entered: summary.steps_entered,
        steps_completed: summary.steps_completed,
        steps_failed: summary.steps_failed,
        steps_running: summary.steps_running,
        current_step: summary.current_step,
    }
}
