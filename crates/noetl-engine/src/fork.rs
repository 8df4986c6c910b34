//! Finds the positions at which an event log can be cut, so that a fork continues from there.
//!
//! The events of one decision are recorded together, and a cut between them would lose information
//! that only the later ones contain. A cut therefore moves back to the last consistent one: an
//! event after which open commands, loops, join tokens, and tokens that wait for admission
//! represent all work in flight. The fork issues that work again.

mod compatibility;

use std::sync::Arc;

use noetl_model::event::{LoopEvent, LoopFact};
use noetl_model::{CommandId, Event, Fact, Seq, StepOutcome};

use crate::execution::{Execution, Status};
use crate::flow::is_call;

pub use compatibility::{Incompatibility, IncompatibilityKind, first_incompatibility};

/// Maximum number of events a fork copies. A fork records them in one transaction; restart a longer
/// execution instead.
pub const FORK_EVENTS_MAX: usize = 20_000;
/// Maximum size, in bytes, of the events a fork copies; see [`FORK_EVENTS_MAX`].
pub const FORK_BYTES_MAX: usize = 64 << 20;

/// Returns the index of the last event up to `cut` that is a consistent cut. Returns `None` if
/// there is none: then a fork can copy only the workload.
pub(crate) fn last_quiescent_event(log: &[Event], cut: Seq) -> Option<usize> {
    let mut state = Execution::new(log.first()?.execution);
    let mut back: Vec<&Arc<str>> = Vec::new();
    let mut last_index = None;
    for (place, event) in log.iter().enumerate().take_while(|(_, event)| event.seq <= cut) {
        state.apply(event);
        follow(&mut back, event);
        let around = (place.checked_sub(1).map(|before| &log[before]), log.get(place + 1));
        let is_rest = is_boundary(event, around) && !is_call_answer(&state, event);
        if back.is_empty() && is_rest && is_under_way(&state) {
            last_index = Some(place);
        }
    }
    last_index
}

/// Tracks taken arcs that close a cycle: between the exit that takes one and the entry it leads to,
/// the state does not represent it.
fn follow<'l>(back: &mut Vec<&'l Arc<str>>, event: &'l Event) {
    match &event.fact {
        Fact::StepExited { next, .. } => {
            back.extend(next.taken.iter().filter(|arc| arc.back).map(|arc| &arc.step));
        }
        Fact::StepEntered { step, .. }
        | Fact::StepDenied { step, .. }
        | Fact::StepHeld { step, .. }
        | Fact::TokensDropped { step, .. } => {
            if let Some(place) = back.iter().position(|waits| *waits == step) {
                back.remove(place);
            }
        }
        _ => {}
    }
}

/// Returns `true` if a decision may end with this event, or can continue after it from the state
/// alone.
fn is_boundary(event: &Event, (before, after): (Option<&Event>, Option<&Event>)) -> bool {
    match &event.fact {
        // A command that fails as it is issued stands for an item that did not render, or lost its
        // worker.
        Fact::CommandIssued(_) => !after.is_some_and(|after| fails(after, event.id.into())),
        Fact::CommandClaimed { .. }
        | Fact::CommandStarted { .. }
        | Fact::CommandParked { .. }
        | Fact::StepHeld { .. } => true,
        Fact::StepExited { outcome, .. } => {
            !matches!(outcome, StepOutcome::Failed { handled: false, .. })
        }
        // The variables that tasks set are recorded right after a result, and belong to it.
        Fact::CallDone { step, .. } => !after.is_some_and(|after| sets(after, step)),
        Fact::ContextUpdated { step, .. } => before.is_some_and(
            |before| matches!(&before.fact, Fact::CallDone { step: of, .. } if of == step),
        ),
        Fact::PlaybookStarted(_)
        | Fact::StepEntered { .. }
        | Fact::TokensDropped { .. }
        | Fact::StepDenied { .. }
        | Fact::Loop(_)
        | Fact::CallFailed { .. }
        | Fact::CommandCompleted { .. }
        | Fact::CommandFailed { .. }
        | Fact::CommandExpired { .. }
        | Fact::CommandCancelled { .. }
        | Fact::PlaybookCompleted { .. }
        | Fact::PlaybookFailed { .. }
        | Fact::PlaybookCancelled { .. }
        | Fact::SubscriptionMoved(_)
        | Fact::Reported(_)
        | Fact::Imported(_) => false,
    }
}

/// Returns `true` if the event is the result of a call in a split pipeline. Only the following
/// events record the verdict of the call's rules.
fn is_call_answer(state: &Execution, event: &Event) -> bool {
    let command = match &event.fact {
        Fact::CallDone { command, .. } => *command,
        Fact::ContextUpdated { .. } => {
            let mut answered = state.commands.values().filter(|open| open.answer.is_some());
            return answered.any(|open| is_call(&open.issued));
        }
        _ => return false,
    };
    state.open_command(command).is_some_and(|open| is_call(&open.issued))
}

fn fails(event: &Event, command: CommandId) -> bool {
    matches!(&event.fact, Fact::CommandFailed { command: of, .. } if *of == command)
}

fn sets(event: &Event, step: &Arc<str>) -> bool {
    matches!(&event.fact, Fact::ContextUpdated { step: of, .. } if of == step)
}

/// Returns `true` if a fork could continue from this state. The events of a decision are
/// contiguous, so between two of them only that decision is incomplete.
fn is_under_way(state: &Execution) -> bool {
    let is_open = !state.commands.is_empty() || !state.held.is_empty() || !state.waiting.is_empty();
    state.status == Status::Running && !state.is_failing() && is_open
}

/// Returns the sequence number before the first unhandled failure, so that a fork from there
/// retries the failed work. For an execution that was cancelled or ended by an operator, returns
/// the one before its end.
pub fn seq_before_failure(log: &[Event]) -> Option<Seq> {
    let failed = log.iter().find_map(|event| match &event.fact {
        Fact::StepExited {
            step, run, outcome: StepOutcome::Failed { handled: false, .. }, ..
        } => Some((event.seq, step, *run)),
        _ => None,
    });
    let at = match failed {
        Some((exit, step, run)) => first_lost_item(log, step, run).unwrap_or(exit),
        None => log.iter().find(|event| event.fact.is_end())?.seq,
    };
    Some(Seq(at.0.saturating_sub(1)))
}

/// Returns the sequence number of the first item failure of a loop that was not retried.
fn first_lost_item(log: &[Event], step: &Arc<str>, run: u32) -> Option<Seq> {
    let issued_after = |place: usize, index: u32| {
        log[place + 1..].iter().any(|event| match &event.fact {
            Fact::CommandIssued(issued) => {
                let is_item = issued.item.as_ref().is_some_and(|item| item.index == index);
                is_item && issued.step == *step && issued.run == run
            }
            _ => false,
        })
    };
    log.iter().enumerate().find_map(|(place, event)| match &event.fact {
        Fact::CommandFailed { step: of, item: Some(item), .. } => {
            let is_lost = of == step && item.run == run && !issued_after(place, item.index);
            is_lost.then_some(event.seq)
        }
        _ => None,
    })
}

/// Returns the sequence number before the last run of a step, or `None` if the step never ran.
pub fn seq_before_step(log: &[Event], step: &str) -> Option<Seq> {
    let entered = log
        .iter()
        .rev()
        .find(|event| matches!(&event.fact, Fact::StepEntered { step: of, .. } if **of == *step))?;
    Some(Seq(entered.seq.0.saturating_sub(1)))
}

/// Returns the names of the steps that ran, each once, in order of their first run.
pub fn steps_entered(log: &[Event]) -> Vec<Arc<str>> {
    let mut steps: Vec<Arc<str>> = Vec::new();
    for event in log {
        if let Fact::StepEntered { step, .. } = &event.fact
            && !steps.contains(step)
        {
            steps.push(step.clone());
        }
    }
    steps
}

/// Returns the approximate size of an event in bytes, for [`FORK_BYTES_MAX`].
pub fn event_bytes(event: &Event) -> usize {
    use crate::values::size_of;
    match &event.fact {
        Fact::PlaybookStarted(started) => started.workload.values().map(size_of).sum(),
        Fact::CommandIssued(issued) => {
            issued.config.values().chain(issued.input.values()).map(size_of).sum()
        }
        Fact::CallDone { data, .. } => size_of(data),
        Fact::ContextUpdated { values, .. } => values.values().map(size_of).sum(),
        Fact::Loop(fact) => match &**fact {
            LoopFact { what: LoopEvent::Items(items), .. } => items.items.iter().map(size_of).sum(),
            LoopFact { .. } => 0,
        },
        _ => 0,
    }
}
