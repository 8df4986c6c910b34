//! Turns state and one input into the events to record.
//!
//! A decision folds its own events into the state as it goes, so that what follows from it is
//! decided on top of it, without copying an execution that may hold 100 000 results. A refusal
//! leaves the state as it was. A caller that cannot commit the events drops the state.

mod abandon;
mod answer;
mod begin;
mod cancel;
mod claim;
mod complete;
mod expire;
mod fail;
mod finalize;
mod fork;
mod input;
mod keep;
mod start;
mod timeout;
mod wake;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use noetl_model::{Event, EventId, Fact, Failure, FailureKind, Timestamp};
use noetl_playbook::Playbook;
use noetl_playbook::template::{Entropy, Place};

pub use input::{
    Abandon, Answer, AnswerFrom, Begin, Cancel, Claim, Complete, Expire, Fail, Finalize, Fork,
    Input, Keep, Start, Timeout, Wake,
};
pub use start::merge;

use crate::execution::{Execution, Status};
use crate::flow::Activation;
use crate::loaded::Loaded;
use crate::trail::{Copied, Trail};

/// Why an input changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such execution.
    #[error("there is no such execution")]
    NotFound,
    #[error("the execution began before")]
    AlreadyStarted,
    #[error("the execution is {0:?} already")]
    AlreadyFinished(Status),
    /// The command is over, or is not one of this execution.
    #[error("the command is over")]
    CommandFinished,
    /// Another worker holds it.
    #[error("the command was claimed by {0}")]
    ClaimedBy(Arc<str>),
    /// The command waits for no answer, or for one with another token.
    #[error("the command waits for no such answer")]
    NotAwaited,
    /// A template of the workload cannot be rendered.
    #[error("{0}")]
    Workload(String),
    /// It depends on values that are not in memory. Load them into [`Moment::loaded`] and ask
    /// again.
    #[error("{} values have to be loaded first", .0.len())]
    Need(Vec<Place>),
}

/// The present, and what is fresh at it.
pub struct Moment<'a> {
    /// What time it is.
    pub now: Timestamp,
    /// Mints ids, each larger than the one before.
    pub ids: &'a mut dyn FnMut() -> EventId,
    /// What `uuid4()` is made from.
    pub entropy: Entropy,
    /// What templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Values that were loaded because the state knows only their places.
    pub loaded: Loaded,
    /// What one execution may ask for.
    pub caps: Caps,
}

/// What one execution may ask for, so that a mistake in a playbook does not take everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Items of one loop.
    pub loop_items: u32,
    /// Items of one loop that run at a time when the playbook does not say.
    pub in_flight: u32,
    /// Executions that start one another, one below the other.
    pub depth: u32,
    /// Events of one execution. At the limit, a running execution fails, and a finished one rejects
    /// further reports.
    pub events: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { loop_items: 100_000, in_flight: 64, depth: 32, events: 10_000_000 }
    }
}

/// Decides one input. On `Ok` the state has the returned events folded in.
///
/// [`Refusal::Need`] names everything that is known to be missing; with that loaded, the answer may
/// be `Need` again, since what comes to light then may depend on more. It ends: each round a
/// template reads what it could not read before.
pub fn decide(
    playbook: &Playbook,
    state: &mut Execution,
    input: Input,
    moment: &mut Moment<'_>,
) -> Result<Vec<Event>, Refusal> {
    let mut draft = Draft::new(playbook, state, moment);
    match input {
        Input::Start(input) => start::decide(&mut draft, *input)?,
        Input::Fork(input) => fork::decide(&mut draft, &input)?,
        Input::Claim(input) => claim::decide(&mut draft, input)?,
        Input::Begin(input) => begin::decide(&mut draft, input)?,
        Input::Complete(input) => complete::decide(&mut draft, input)?,
        Input::Fail(input) => fail::decide(&mut draft, input)?,
        Input::Expire(input) => expire::decide(&mut draft, input)?,
        Input::Cancel(input) => cancel::decide(&mut draft, input)?,
        Input::Abandon(Abandon) => abandon::decide(&mut draft)?,
        Input::Keep(input) => keep::decide(&mut draft, *input)?,
        Input::Wake(input) => wake::decide(&mut draft, &input)?,
        Input::Answer(input) => answer::decide(&mut draft, *input)?,
        Input::Timeout(input) => timeout::decide(&mut draft, &input)?,
        Input::Finalize(input) => finalize::decide(&mut draft, input)?,
    }
    draft.bound_events();
    draft.finish()
}

/// How long an answer from elsewhere is waited for when nobody says.
pub(crate) const CALLBACK_WAIT: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A decision in the making.
pub(crate) struct Draft<'a, 'm> {
    pub(crate) playbook: &'a Playbook,
    pub(crate) state: &'a mut Execution,
    pub(crate) moment: &'a mut Moment<'m>,
    pub(crate) events: Vec<Event>,
    /// Steps to enter, in order.
    pub(crate) queue: VecDeque<Activation>,
    /// Loops that are being advanced, innermost last, and whether to do so once more.
    pub(crate) advancing: Vec<((Arc<str>, u32), bool)>,
    /// Visits that began and ended within this decision.
    pub(crate) inline_visits: u32,
    /// How many events there were when tokens that wait to be admitted were last looked at.
    pub(crate) held_tried: Option<usize>,
    /// What templates can reach beyond the state: what the caller loaded, and what this decision
    /// recorded itself.
    pub(crate) loaded: Loaded,
    /// What is missing. If there is anything, the decision is undone.
    pub(crate) needed: Vec<Place>,
    /// Caller that the next recorded event names.
    pub(crate) actor: Option<Arc<str>>,
    before: Copied,
    /// Where the moment's entropy stood.
    drawn: u64,
    trail: Trail,
}

impl<'a, 'm> Draft<'a, 'm> {
    /// Returns `true` for the step that runs last, also after a failure.
    pub(crate) fn is_final(&self, step: &str) -> bool {
        self.playbook.final_step.is_some_and(|ix| *self.playbook.step(ix).name == *step)
    }

    pub(crate) fn new(
        playbook: &'a Playbook,
        state: &'a mut Execution,
        moment: &'a mut Moment<'m>,
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
            before: Copied::of(state),
            drawn: moment.entropy.position(),
            trail: Trail::kept(),
            state,
            moment,
        }
    }

    /// The decision, or, if anything is missing, what it is and the state as it was.
    fn finish(self) -> Result<Vec<Event>, Refusal> {
        if self.needed.is_empty() {
            return Ok(self.events);
        }
        // Another try with the same moment draws the same.
        self.moment.entropy.rewind(self.drawn);
        self.before.restore(self.state, self.trail);
        Err(Refusal::Need(self.needed))
    }

    /// Undoes the decision; answers what it found missing.
    pub(crate) fn undo(self) -> Vec<Place> {
        self.before.restore(self.state, self.trail);
        self.needed
    }

    /// Notes what is missing.
    pub(crate) fn need(&mut self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            let is_known = self.needed.iter().any(|known| known.is_same(&place));
            if !is_known && !self.loaded.has(&place) {
                self.needed.push(place);
            }
        }
    }

    /// Records a fact: it is part of the decision and of the state from here on.
    pub(crate) fn record(&mut self, fact: Fact) -> EventId {
        let id = (self.moment.ids)();
        self.record_as(id, fact)
    }

    fn record_as(&mut self, id: EventId, fact: Fact) -> EventId {
        let event = Event {
            execution: self.state.id,
            id,
            seq: self.state.version.next(),
            at: self.moment.now,
            fact,
            actor: self.actor.take(),
        };
        self.state.fold(&event, &mut self.trail);
        // What it holds is at hand for the rest of this decision, however large.
        if self.trail.take_placed() {
            self.loaded.insert(&event);
        }
        self.events.push(event);
        id
    }

    /// Refuses what an absent execution cannot be asked.
    fn known(&self) -> Result<(), Refusal> {
        if self.state.status == Status::Absent { Err(Refusal::NotFound) } else { Ok(()) }
    }

    /// Fails an execution whose log has as many events as it may have. Terminal at once, because
    /// waiting for what runs would add more.
    fn bound_events(&mut self) {
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

    /// Refuses what a finished or absent execution cannot be asked.
    fn running(&self) -> Result<(), Refusal> {
        self.known()?;
        if self.state.status.is_final() {
            return Err(Refusal::AlreadyFinished(self.state.status));
        }
        Ok(())
    }
}
