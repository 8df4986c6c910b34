//! A decision in progress.
//!
//! A decision folds its events into the state as it records them, so later parts of the decision
//! see the result of earlier ones without copying an execution that may hold 100,000 results. A
//! rejection leaves the state unchanged. A caller that cannot commit the events discards the state.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use noetl_model::{Event, EventId, Fact, Failure, FailureKind, Timestamp};
use noetl_playbook::{Playbook, StepIx};
use noetl_template::{Entropy, ValueRef};

use crate::execution::{Execution, Status};
use crate::loaded::DecisionValues;
use crate::undo_log::{CopiedState, UndoLog};

/// Reason the engine rejects an input. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The execution has no events.
    #[error("execution not found")]
    NotFound,
    #[error("the execution began before")]
    AlreadyStarted,
    #[error("the execution is {0:?} already")]
    AlreadyFinished(Status),
    /// The command is terminal, or does not belong to this execution.
    #[error("the command is over")]
    CommandFinished,
    /// Another worker holds the command.
    #[error("the command was claimed by {0}")]
    ClaimedBy(Arc<str>),
    /// The command waits for no answer, or for an answer with a different token.
    #[error("command does not wait for this answer")]
    NotAwaited,
    /// A template of the workload failed to render.
    #[error("{0}")]
    Workload(String),
    /// The decision depends on values that are not in memory. Load them into [`DecisionEnv::loaded`] and
    /// retry.
    #[error("{} values have to be loaded first", .0.len())]
    Need(Vec<ValueRef>),
}

/// Inputs of a decision that come from outside the state: time, IDs, entropy, and limits.
pub struct DecisionEnv<'a> {
    /// Current time; recorded as the time of the new events.
    pub now: Timestamp,
    /// Mints event IDs, each larger than the previous one.
    pub ids: &'a mut dyn FnMut() -> EventId,
    /// Source of randomness for `uuid4()`.
    pub entropy: Entropy,
    /// Variables that templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Values that the caller loaded because the state has only references to them.
    pub loaded: DecisionValues,
    /// Limits of one execution.
    pub caps: ExecutionLimits,
}

/// Limits of one execution, so that a mistake in a playbook cannot exhaust shared resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionLimits {
    /// Maximum number of items of one loop. Default 100,000.
    pub loop_items: u32,
    /// Maximum number of items of one loop in flight if the playbook does not set it. Default 64.
    pub in_flight: u32,
    /// Maximum nesting depth of child executions. Default 32.
    pub depth: u32,
    /// Maximum number of events of one execution. Default 10,000,000. At the limit, a running
    /// execution fails, and a finished one rejects further reports.
    pub events: u64,
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self { loop_items: 100_000, in_flight: 64, depth: 32, events: 10_000_000 }
    }
}

/// A step to enter.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) step: StepIx,
    /// Number of waiting tokens that entering the step consumes.
    pub(crate) tokens: u32,
    /// Step whose arc led here; `None` for the first step.
    pub(crate) from: Option<Arc<str>>,
    /// Whether the token already waits for admission.
    pub(crate) held: bool,
}

/// Default timeout of an external answer, used if the playbook sets none.
pub(crate) const CALLBACK_WAIT: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A decision in progress.
pub(crate) struct Decision<'a, 'm> {
    pub(crate) playbook: &'a Playbook,
    pub(crate) state: &'a mut Execution,
    pub(crate) moment: &'a mut DecisionEnv<'m>,
    pub(crate) events: Vec<Event>,
    /// Steps to enter, in order.
    pub(crate) queue: VecDeque<Activation>,
    /// Loops being advanced, innermost last, and whether each needs another pass.
    pub(crate) advancing: Vec<((Arc<str>, u32), bool)>,
    /// Number of step runs that began and ended within this decision.
    pub(crate) inline_visits: u32,
    /// Number of recorded events when tokens that wait for admission were last evaluated.
    pub(crate) held_tried: Option<usize>,
    /// Values that templates can read beyond the state: those the caller loaded, and those this
    /// decision recorded.
    pub(crate) loaded: DecisionValues,
    /// Values that are missing. If there are any, [`decide`](crate::decide) undoes the decision.
    pub(crate) needed: Vec<ValueRef>,
    /// Caller that the next recorded event names.
    pub(crate) actor: Option<Arc<str>>,
    before: CopiedState,
    /// Position of the entropy source when the decision began.
    drawn: u64,
    trail: UndoLog,
}

impl<'a, 'm> Decision<'a, 'm> {
    /// Returns `true` for the step that runs last, also after a failure.
    pub(crate) fn is_final(&self, step: &str) -> bool {
        self.playbook.final_step.is_some_and(|ix| *self.playbook.step(ix).name == *step)
    }

    pub(crate) fn new(
        playbook: &'a Playbook,
        state: &'a mut Execution,
        moment: &'a mut DecisionEnv<'m>,
    ) -> Self {
        let (events, queue) = (Vec::with_capacity(8), VecDeque::new());
        Self {
            playbook,
            events,
            queue,
            advancing: Vec::new(),
            inline_visits: 0,
            held_tried: None,
            loaded: moment.loaded.clone(),
            needed: Vec::new(),
            actor: None,
            before: CopiedState::from_state(state),
            drawn: moment.entropy.position(),
            trail: UndoLog::kept(),
            state,
            moment,
        }
    }

    /// Returns the events, or restores the state and returns [`Rejection::Need`] if values are
    /// missing.
    pub(crate) fn finish(self) -> Result<Vec<Event>, Rejection> {
        if self.needed.is_empty() {
            return Ok(self.events);
        }
        // A retry with the same `DecisionEnv` draws the same random values.
        self.moment.entropy.rewind(self.drawn);
        self.before.restore(self.state, self.trail);
        Err(Rejection::Need(self.needed))
    }

    /// Undoes the decision and returns the values it found missing.
    pub(crate) fn undo(self) -> Vec<ValueRef> {
        self.before.restore(self.state, self.trail);
        self.needed
    }

    /// Adds the values that are neither loaded nor already listed to the missing ones.
    pub(crate) fn need(&mut self, places: impl IntoIterator<Item = ValueRef>) {
        for place in places {
            let is_known = self.needed.iter().any(|known| known.is_same(&place));
            if !is_known && !self.loaded.has(&place) {
                self.needed.push(place);
            }
        }
    }

    /// Records a fact as an event of the decision and folds it into the state.
    pub(crate) fn record(&mut self, fact: Fact) -> EventId {
        let id = (self.moment.ids)();
        self.record_as(id, fact)
    }

    pub(crate) fn record_as(&mut self, id: EventId, fact: Fact) -> EventId {
        let event = Event {
            execution: self.state.id,
            id,
            seq: self.state.version.next(),
            at: self.moment.now,
            fact,
            actor: self.actor.take(),
        };
        self.state.fold(&event, &mut self.trail);
        // Values of this event are available to the rest of the decision, whatever their size.
        if self.trail.take_placed() {
            self.loaded.insert(&event);
        }
        self.events.push(event);
        id
    }

    /// Returns [`Rejection::NotFound`] if the execution is absent.
    pub(crate) fn known(&self) -> Result<(), Rejection> {
        if self.state.status == Status::Absent { Err(Rejection::NotFound) } else { Ok(()) }
    }

    /// Fails an execution whose event log has reached its limit. Terminal at once, because waiting
    /// for commands in flight would add more events.
    pub(crate) fn bound_events(&mut self) {
        let most = self.moment.caps.events;
        if self.state.status != Status::Running || self.state.version.0 < most {
            return;
        }
        self.cancel_commands(|_| true);
        let step = self.state.current_step.clone().unwrap_or_default();
        let message = format!(
            "the execution has {} events, and may have {most} (NOETL_EVENTS_MAX)",
            self.state.version.0
        );
        let failure = Failure::new(FailureKind::OutputLimit, message);
        self.record(Fact::PlaybookFailed { step, failure });
    }

    /// Returns a rejection if the execution is finished or absent.
    pub(crate) fn running(&self) -> Result<(), Rejection> {
        self.known()?;
        if self.state.status.is_final() {
            return Err(Rejection::AlreadyFinished(self.state.status));
        }
        Ok(())
    }
}
