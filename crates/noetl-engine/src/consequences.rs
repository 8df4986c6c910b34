//! Derives changes outside the event log from events: command rows, timers, effects, spans, and
//! blobs.
//!
//! [`Decision::add`] is the only place that maps facts to consequences, and names every fact. Command
//! rows are a fold of their own, [`CommandChange::from_event`], because stores verify them.

use std::sync::Arc;

use noetl_model::event::{BlobRef, ParkReason};
use noetl_model::{
    CommandChange, CommandId, Event, Fact, Failure, FailureKind, StepOutcome, Value,
};
use noetl_template::blob_of_ref;

use crate::decision::Decision;
use crate::effects::Effect;
use crate::execution::Execution;
use crate::spans::{OpenSpan, SpanBuilder};
use crate::timers::{self, Timer, TimerKind};

/// State and settings that the consequences of events depend on.
struct DecisionContext<'a> {
    /// State after all events of the decision.
    state: &'a Execution,
    events: &'a [Arc<Event>],
    notify: &'a dyn Fn(&str) -> bool,
    /// `None` if no spans are wanted.
    spans: Option<SpanBuilder<'a>>,
}

impl Decision {
    /// Returns the decision that consists of `events` and everything they imply. `state` is the state
    /// after the events; `notify` returns `true` for the kinds of notification to send; `ending`
    /// lists the commands that may end, if spans are wanted.
    pub fn from_events(
        state: &Execution,
        events: Vec<Arc<Event>>,
        notify: &dyn Fn(&str) -> bool,
        ending: Option<&[OpenSpan]>,
    ) -> Self {
        let mut decision = Self::none(state);
        let spans = ending.and_then(|ending| SpanBuilder::new(state, ending, &events));
        let context = DecisionContext { state, events: &events, notify, spans };
        for index in 0..events.len() {
            decision.add(&context, index);
        }
        decision.events = events;
        decision
    }

    fn add(&mut self, context: &DecisionContext<'_>, index: usize) {
        let DecisionContext { state, events, spans, .. } = context;
        let event = &*events[index];
        let spans = spans.as_ref();
        if let Some(change) = CommandChange::from_event(event) {
            self.change_command(change);
        }
        let timer = |at, kind| Timer { target: event.execution, at, kind };
        match &event.fact {
            Fact::PlaybookStarted(started) => {
                self.timers.extend(started.deadline.map(|at| timer(at, TimerKind::Deadline)));
            }
            Fact::StepEntered { step, run, deadline, .. } => {
                let (step, run) = (step.clone(), *run);
                let kind = TimerKind::StepTimeout { step, run };
                self.timers.extend(deadline.map(|at| timer(at, kind)));
            }
            Fact::StepHeld { step, until, .. } => {
                let (step, until) = (step.clone(), *until);
                self.timers.push(timer(until, TimerKind::AdmissionTimeout { step, until }));
            }
            Fact::CommandIssued(_) => {
                self.effects.push(Effect::Dispatch { command: event.id.into() });
            }
            Fact::CommandParked { command, on, step } => {
                self.park(context, event, *command, on, step);
            }
            Fact::CallDone { reference, data, .. } => {
                let blob = reference.clone().or_else(|| blob_in(data).map(Arc::new));
                self.blobs.extend(blob.map(|blob| blob.digest.clone()));
            }
            Fact::CommandCompleted { command, step, .. } => {
                self.spans.extend(spans.and_then(|to| to.command(event, *command, step, None)));
            }
            Fact::CommandFailed { command, step, failure, .. } => {
                if failure.kind == FailureKind::Timeout {
                    self.timers.extend(timers::cancel_child(state, event, *command));
                }
                let error = || Some(failure.to_string());
                self.spans.extend(spans.and_then(|to| to.command(event, *command, step, error())));
            }
            Fact::CommandExpired { command, step, reason } => {
                self.effects.push(Effect::Stop { command: *command });
                let error = || Some(reason.clone());
                self.spans.extend(spans.and_then(|to| to.command(event, *command, step, error())));
            }
            Fact::CommandCancelled { command, step } => {
                self.effects.push(Effect::Stop { command: *command });
                self.timers.extend(timers::cancel_child(state, event, *command));
                let error = || Some("cancelled".to_owned());
                self.spans.extend(spans.and_then(|to| to.command(event, *command, step, error())));
            }
            Fact::StepExited { outcome, .. } => self.exit(context, index, outcome),
            Fact::PlaybookCompleted { reference, .. } => {
                self.blobs.extend(reference.iter().map(|blob| blob.digest.clone()));
                self.end(context, event, Some("completed"), None);
            }
            Fact::PlaybookFailed { failure, .. } => {
                self.end(context, event, Some("failed"), Some(failure));
            }
            Fact::PlaybookCancelled { .. } => {
                self.end(context, event, None, None);
                self.timers.extend(timers::cancel_sent(state, event));
            }
            // A claim and a start change the command's row only. The rest is history or state.
            Fact::CommandClaimed { .. }
            | Fact::CommandStarted { .. }
            | Fact::TokensDropped { .. }
            | Fact::StepDenied { .. }
            | Fact::Loop(_)
            | Fact::CallFailed { .. }
            | Fact::ContextUpdated { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => {}
        }
    }

    fn park(
        &mut self,
        context: &DecisionContext<'_>,
        event: &Event,
        command: CommandId,
        on: &ParkReason,
        step: &Arc<str>,
    ) {
        let wake =
            |at| Timer { target: event.execution, at, kind: TimerKind::Wake { command, at } };
        match on {
            ParkReason::Until(at) | ParkReason::Retry(at) => self.timers.push(wake(*at)),
            ParkReason::Callback(callback) => {
                self.timers.push(wake(callback.until));
                self.notify(context, event, "waiting", Some(step.clone()), None);
            }
            ParkReason::Child(child) => {
                let start =
                    timers::start_child(context.state, context.events, event, command, child);
                self.timers.push(start);
                self.timers.extend(child.until.map(wake));
            }
        }
    }

    /// Stops commands that were open at an unhandled failure: they can't change the outcome. A command
    /// that was issued after the failure belongs to the final step.
    fn exit(&mut self, context: &DecisionContext<'_>, index: usize, outcome: &StepOutcome) {
        let StepOutcome::Failed { handled: false, drains: false, .. } = outcome else { return };
        let later = &context.events[index + 1..];
        let open = context.state.open_commands().map(|(command, _)| command);
        let stopped = open.filter(|command| !later.iter().any(|event| issues(event, *command)));
        self.effects.extend(stopped.map(|command| Effect::Stop { command }));
    }

    fn end(
        &mut self,
        context: &DecisionContext<'_>,
        event: &Event,
        notification: Option<&str>,
        failure: Option<&Failure>,
    ) {
        let state = context.state;
        self.effects.push(Effect::Finish { status: state.status() });
        self.timers.extend(timers::report_to_parent(state, event));
        if let Some(what) = notification {
            let error = failure.map(ToString::to_string);
            self.notify(context, event, what, state.current_step.clone(), error);
        }
        let spans = context.spans.as_ref();
        self.spans.extend(spans.and_then(|to| to.execution(state, event)));
    }

    fn notify(
        &mut self,
        context: &DecisionContext<'_>,
        event: &Event,
        what: &str,
        step: Option<Arc<str>>,
        error: Option<String>,
    ) {
        if (context.notify)(what) {
            let kind = TimerKind::Notify { what: Arc::from(what), step, error };
            self.timers.push(Timer { target: event.execution, at: event.at, kind });
        }
    }
}

fn issues(event: &Event, command: CommandId) -> bool {
    matches!(event.fact, Fact::CommandIssued(_)) && command == event.id.into()
}

/// Returns the blob in a result that is itself a reference, such as a stored artifact.
fn blob_in(data: &Value) -> Option<BlobRef> {
    let is_reference = data.get("kind").is_some_and(|kind| kind == "result_ref");
    blob_of_ref(data.get("ref").filter(|_| is_reference)?.as_str()?)
}
