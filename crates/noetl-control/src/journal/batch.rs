//! One batch in the making: what each execution adds, and who waits for which part of it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Effect, Status, due_of, effects_of};
use noetl_model::event::Issued;
use noetl_model::trace::Span;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Seq, Tenant};
use noetl_store::{Append, ExecutionRow, ExecutionStatus, NewDue, Start};
use tokio::sync::oneshot;

use super::again::Again;
use super::writer::{STOP_GRACE, WriterParts};
use super::{Accepted, SubmitError};
use crate::cache::Cached;
use crate::dispatch::{Slot, Waiting};
use crate::due;
use crate::results;
use crate::snapshots::{self, Taken};

/// Who waits for an input's outcome, and which of the item's events it led to.
pub(super) struct Reply {
    pub(super) to: oneshot::Sender<Result<Accepted, SubmitError>>,
    pub(super) outcome: Result<Range<usize>, SubmitError>,
    /// What was claimed for the worker that waits.
    pub(super) handed: Option<CommandId>,
    /// Input to decide again if its events are not committed.
    pub(super) again: Box<Again>,
}

/// What a decision led to: where its events are, and what of it was claimed for the worker that asked.
pub(super) type Led = (Range<usize>, Option<CommandId>);

impl Reply {
    pub(super) fn new(
        to: oneshot::Sender<Result<Accepted, SubmitError>>,
        led: Result<Led, SubmitError>,
        again: Box<Again>,
    ) -> Self {
        let handed = led.as_ref().ok().and_then(|(_, handed)| *handed);
        Self { to, outcome: led.map(|(events, _)| events), handed, again }
    }
}

/// A command claimed in this batch for the worker in this process.
pub(super) struct LocalClaim {
    pub(super) waiting: Waiting,
    pub(super) slot: Slot,
    pub(super) issued: Arc<Issued>,
    pub(super) tenant: Tenant,
    /// Whether it waited before, and so has to wait again if the batch fails.
    pub(super) waited: bool,
}

/// What one execution adds.
pub(super) struct Item {
    pub(super) cached: Cached,
    expected: Seq,
    after: Option<EventId>,
    was_failing: bool,
    /// Whether due rows are written with it.
    has_due: bool,
    start: Option<Start>,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// What is claimed for workers elsewhere that name what they hold, and for how long.
    pub(super) leases: Vec<(CommandId, Duration)>,
    /// What of a trace ends with it.
    pub(super) spans: Vec<Span>,
}

/// What one execution added and is not known to be durable yet. Its state has moved on already.
pub(super) struct Pending {
    pub(super) execution: ExecutionId,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) effects: Vec<Effect>,
    pub(super) replies: Vec<Reply>,
    pub(super) claims: Vec<LocalClaim>,
    /// The log's last place once it is kept.
    pub(super) version: Seq,
    /// Whether a due row was written with it.
    pub(super) has_due: bool,
    /// The state after its events, to be kept once they are.
    pub(super) snapshot: Option<Taken>,
    /// What of a trace ends with it, to be told once it is kept.
    pub(super) spans: Vec<Span>,
}

impl Item {
    pub(super) fn new(cached: Cached, start: Option<Start>) -> Self {
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

    /// Whether nothing was decided on its state yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.start.is_none()
            && self.events.is_empty()
            && self.replies.is_empty()
            && self.claims.is_empty()
    }

    /// Adds the events of one decision; answers where they are.
    pub(super) fn add(&mut self, events: Vec<Event>) -> Range<usize> {
        let from = self.events.len();
        self.events.extend(events.into_iter().map(Arc::new));
        from..self.events.len()
    }

    fn append(&mut self, parts: &WriterParts) -> Option<Append> {
        if self.events.is_empty() {
            return None;
        }
        let state = &self.cached.state;
        let playbook = &self.cached.playbook;
        let mut due: Vec<NewDue> =
            due_of(state, |what| parts.notify.wants(playbook, what), &self.events)
                .into_iter()
                .map(|wish| due::row(parts.ids.due(), wish))
                .collect();
        if state.is_failing() && !self.was_failing {
            let at = parts.clock.now().plus(STOP_GRACE);
            due.push(due::abandon(parts.ids.due(), state.id(), at));
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

    /// Parts the state, which goes back into memory, from what waits for the commit.
    fn pend(mut self) -> (Cached, Pending) {
        let snapshot = snapshots::take(&mut self.cached, self.events.len());
        let state = &self.cached.state;
        // A command that was stopped in the batch that claimed it is not run; its slot is free.
        self.claims.retain(|claim| state.open_command(claim.waiting.command).is_some());
        for reply in &mut self.replies {
            reply.handed = reply.handed.filter(|command| state.open_command(*command).is_some());
        }
        let pending = Pending {
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

impl Pending {
    /// Answers everybody who waits for this.
    pub(super) fn answer(replies: Vec<Reply>, events: &[Arc<Event>]) {
        for reply in replies {
            let Reply { outcome, handed, .. } = reply;
            let outcome = outcome.map(|range| Accepted { events: events[range].to_vec(), handed });
            // A caller that went away needs no answer; what it asked for is durable.
            let _ = reply.to.send(outcome);
        }
    }

    /// Tells everybody who waits for this that it was not kept.
    pub(super) fn refuse(replies: Vec<Reply>, error: &SubmitError) {
        for reply in replies {
            let _ = reply.to.send(Err(error.clone()));
        }
    }
}

/// The items of a batch, in the order their executions were first named.
#[derive(Default)]
pub(super) struct Batch {
    places: HashMap<ExecutionId, usize>,
    items: Vec<Item>,
}

impl Batch {
    pub(super) fn get(&mut self, execution: ExecutionId) -> Option<&mut Item> {
        self.places.get(&execution).map(|&place| &mut self.items[place])
    }

    pub(super) fn put(&mut self, execution: ExecutionId, item: Item) -> &mut Item {
        let place = self.items.len();
        self.places.insert(execution, place);
        self.items.push(item);
        &mut self.items[place]
    }

    /// Parts a decided batch into what to commit, what waits for that with the place of its
    /// append, and the states.
    pub(super) fn seal(self, parts: &WriterParts) -> Sealed {
        let mut sealed = Sealed::default();
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

/// A decided batch, taken apart.
#[derive(Default)]
pub(super) struct Sealed {
    pub(super) appends: Vec<Append>,
    pub(super) pending: Vec<(Pending, Option<usize>)>,
    pub(super) states: Vec<Cached>,
}

fn row(cached: &Cached) -> ExecutionRow {
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
