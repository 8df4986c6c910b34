//! Where a log can be cut, so that another execution goes on from there.
//!
//! The events of one decision are recorded together, and a cut between them would lose what only
//! the rest of them says. So a cut is moved back to the last place where the execution was at rest:
//! where everything that is under way is known by an open command, a loop, a waiting token or a
//! token that waits to be admitted. What was under way there is handed out anew.

mod fits;

use std::sync::Arc;

use noetl_model::event::{LoopEvent, LoopFact};
use noetl_model::{CommandId, Event, Fact, Outcome, Seq};

use crate::execution::{Execution, Status};
use crate::flow::is_call;

pub use fits::{Misfit, Why, misfit};

/// How many events, and bytes of them, another execution may begin with. They are recorded in one
/// transaction; what is longer is better begun anew.
pub const FORK_EVENTS_MAX: usize = 20_000;
/// See [`FORK_EVENTS_MAX`].
pub const FORK_BYTES_MAX: usize = 64 << 20;

/// The index of the last event up to `cut` after which the execution was at rest. None when it had
/// not come to rest by then: nothing of it can be taken over but its workload.
pub(crate) fn last_rest(log: &[Event], cut: Seq) -> Option<usize> {
    let mut state = Execution::absent(log.first()?.execution);
    let mut back: Vec<&Arc<str>> = Vec::new();
    let mut found = None;
    for (place, event) in log.iter().enumerate().take_while(|(_, event)| event.seq <= cut) {
        state.apply(event);
        follow(&mut back, event);
        let around = (place.checked_sub(1).map(|before| &log[before]), log.get(place + 1));
        let is_rest = is_boundary(event, around) && !is_call_answer(&state, event);
        if back.is_empty() && is_rest && is_under_way(&state) {
            found = Some(place);
        }
    }
    found
}

/// Keeps track of arcs that close a loop: between the exit that takes one and the entry it leads to
/// nothing in the state knows of it.
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

/// Whether a decision may end with this event, or go on after it from the state alone.
fn is_boundary(event: &Event, (before, after): (Option<&Event>, Option<&Event>)) -> bool {
    match &event.fact {
        // One that fails as it is issued stands for something that could not be rendered, or was lost.
        Fact::CommandIssued(_) => !after.is_some_and(|after| fails(after, event.id.into())),
        Fact::CommandClaimed { .. }
        | Fact::CommandStarted { .. }
        | Fact::CommandParked { .. }
        | Fact::StepHeld { .. } => true,
        Fact::StepExited { outcome, .. } => {
            !matches!(outcome, Outcome::Failed { handled: false, .. })
        }
        // What its tasks set is recorded right after an answer, and belongs to it.
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

/// Whether the event answers a call of a split pipeline. What its rules decided is known only to the
/// events that follow.
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

/// Whether there is something to go on with. The events of a decision come in a row, so between two of
/// them nothing but that decision is half done.
fn is_under_way(state: &Execution) -> bool {
    let is_open = !state.commands.is_empty() || !state.held.is_empty() || !state.waiting.is_empty();
    state.status == Status::Running && !state.is_failing() && is_open
}

/// The place before what an execution failed of, so that going on from there tries it again. For
/// one that was stopped, or ended from outside, the place before that.
pub fn before_failure(log: &[Event]) -> Option<Seq> {
    let failed = log.iter().find_map(|event| match &event.fact {
        Fact::StepExited {
            step,
            generation,
            outcome: Outcome::Failed { handled: false, .. },
            ..
        } => Some((event.seq, step, *generation)),
        _ => None,
    });
    let at = match failed {
        Some((exit, step, generation)) => first_lost_item(log, step, generation).unwrap_or(exit),
        None => log.iter().find(|event| event.fact.is_end())?.seq,
    };
    Some(Seq(at.0.saturating_sub(1)))
}

/// Where the first item of a loop failed that was not tried again.
fn first_lost_item(log: &[Event], step: &Arc<str>, generation: u32) -> Option<Seq> {
    let issued_after = |place: usize, index: u32| {
        log[place + 1..].iter().any(|event| match &event.fact {
            Fact::CommandIssued(issued) => {
                let is_item = issued.item.as_ref().is_some_and(|item| item.index == index);
                is_item && issued.step == *step && issued.generation == generation
            }
            _ => false,
        })
    };
    log.iter().enumerate().find_map(|(place, event)| match &event.fact {
        Fact::CommandFailed { step: of, item: Some(item), .. } => {
            let is_lost =
                of == step && item.generation == generation && !issued_after(place, item.index);
            is_lost.then_some(event.seq)
        }
        _ => None,
    })
}

/// The place before the last visit of a step, if it was ever entered.
pub fn before_step(log: &[Event], step: &str) -> Option<Seq> {
    let entered = log
        .iter()
        .rev()
        .find(|event| matches!(&event.fact, Fact::StepEntered { step: of, .. } if **of == *step))?;
    Some(Seq(entered.seq.0.saturating_sub(1)))
}

/// The steps that were entered, each name once, in order.
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

/// A rough size of an event, for the bound on what is taken over.
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
