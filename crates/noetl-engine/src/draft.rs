//! A decision in progress.
//!
//! A decision folds its events into the state as it records them, so later parts of the decision
//! see the result of earlier ones without copying an execution that may hold 100,000 results. A
//! rejection leaves the state unchanged. A caller that cannot commit the events discards the state.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{CommandId, CommandState, Event, EventId, Fact, Failure, FailureKind};
use noetl_playbook::{Playbook, StepIx};
use noetl_template::ValueRef;

use crate::decision::{Decision, DecisionEnv, Rejection};
use crate::execution::{Execution, Status};
use crate::loaded::DecisionValues;
use crate::spans::OpenSpan;
use crate::timers::{Timer, TimerKind};
use crate::undo_log::{CopiedState, UndoLog};

/// Time a failing execution waits for the commands it stopped before it abandons them.
const STOP_GRACE: Duration = Duration::from_secs(30);

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
pub(crate) const CALLBACK_WAIT: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct Draft<'a, 'm> {
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
    /// Whether the execution was failing before the decision.
    was_failing: bool,
    before: CopiedState,
    /// Position of the entropy source when the decision began.
    drawn: u64,
    trail: UndoLog,
}

impl<'a, 'm> Draft<'a, 'm> {
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
            was_failing: state.is_failing(),
            before: CopiedState::from_state(state),
            drawn: moment.entropy.position(),
            trail: UndoLog::recording(),
            state,
            moment,
        }
    }

    /// Returns the decision, or restores the state and returns [`Rejection::Need`] if values are
    /// missing. `ending` lists the commands that the input may end, if spans are wanted.
    pub(crate) fn finish(mut self, ending: Option<Vec<OpenSpan>>) -> Result<Decision, Rejection> {
        if !self.needed.is_empty() {
            // A retry with the same `DecisionEnv` draws the same random values.
            self.moment.entropy.rewind(self.drawn);
            self.before.restore(self.state, self.trail);
            return Err(Rejection::Need(self.needed));
        }
        self.offer_commands();
        let events = self.events.into_iter().map(Arc::new).collect();
        let mut decision =
            Decision::from_events(self.state, events, self.moment.notify, ending.as_deref());
        if self.state.is_failing() && !self.was_failing {
            let at = self.moment.now.plus(STOP_GRACE);
            decision.timers.push(Timer { target: self.state.id, at, kind: TimerKind::Abandon });
        }
        Ok(decision)
    }

    /// Claims the commands that this decision issued for the workers that the caller names.
    fn offer_commands(&mut self) {
        if self.state.status != Status::Running {
            return;
        }
        let issued =
            self.events.iter().filter(|event| matches!(event.fact, Fact::CommandIssued(_)));
        let issued: Vec<CommandId> = issued.map(|event| event.id.into()).collect();
        for command in issued {
            let Some(open) = self.state.open_command(command) else { continue };
            if open.state != CommandState::Pending || !self.is_claimable(&open.issued.step) {
                continue;
            }
            let spec = open.issued.clone();
            if let Some(worker) = (self.moment.claim_for)(command, &spec) {
                self.record(Fact::CommandClaimed { command, step: spec.step.clone(), worker });
            }
        }
    }

    /// Returns `true` if a pending command of this step may be claimed: a failing execution waits
    /// only for commands in flight and for the step that runs last.
    pub(crate) fn is_claimable(&self, step: &str) -> bool {
        !self.state.is_failing() || self.is_final(step)
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
