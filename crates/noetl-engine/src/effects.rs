//! What committed events call for outside the log.

use std::sync::Arc;

use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{CommandId, Event, Fact, Outcome};

use crate::{Execution, Status};

/// Work that follows from events once they are durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Hand this command to a worker.
    Dispatch {
        command: CommandId,
        /// Who claimed it in the same transaction, if somebody did.
        claimed_by: Option<Arc<str>>,
    },
    /// Tell whoever runs this command to stop.
    Stop { command: CommandId },
    /// Tell whoever waits for the execution that it ended.
    Finish { status: Status },
}

/// The work `events` call for; `state` is the state after them.
pub fn effects_of(state: &Execution, events: &[Arc<Event>]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (place, event) in events.iter().enumerate() {
        match &event.fact {
            Fact::CommandIssued(_) => {
                effects.push(Effect::Dispatch { command: event.id.into(), claimed_by: None });
            }
            // It needs no worker.
            Fact::CommandClaimed { command, worker, .. } if &**worker == CONTROL_PLANE => {
                effects.retain(
                    |effect| !matches!(effect, Effect::Dispatch { command: c, .. } if c == command),
                );
            }
            Fact::CommandClaimed { command, worker, .. } => {
                let issued = effects.iter_mut().rev().find(
                    |effect| matches!(effect, Effect::Dispatch { command: c, .. } if c == command),
                );
                if let Some(Effect::Dispatch { claimed_by, .. }) = issued {
                    *claimed_by = Some(worker.clone());
                }
            }
            Fact::CommandCancelled { command, .. } | Fact::CommandExpired { command, .. } => {
                effects.retain(
                    |effect| !matches!(effect, Effect::Dispatch { command: c, .. } if c == command),
                );
                effects.push(Effect::Stop { command: *command });
            }
            // Fail fast: commands that were open at the failure can't change the outcome. A command
            // that was issued after it is the final step's.
            Fact::StepExited {
                outcome: Outcome::Failed { handled: false, drains: false, .. },
                ..
            } => {
                let later = &events[place + 1..];
                let open = state.open_commands().map(|(command, _)| command);
                let stopped = open.filter(|command| !later.iter().any(|it| issues(it, *command)));
                effects.extend(stopped.map(|command| Effect::Stop { command }));
            }
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => {
                effects.push(Effect::Finish { status: state.status() });
            }
            Fact::PlaybookStarted(_)
            | Fact::StepEntered { .. }
            | Fact::TokensDropped { .. }
            | Fact::StepDenied { .. }
            | Fact::StepHeld { .. }
            | Fact::Loop(_)
            | Fact::CommandParked { .. }
            | Fact::CommandStarted { .. }
            | Fact::CallDone { .. }
            | Fact::CallFailed { .. }
            | Fact::CommandCompleted { .. }
            | Fact::CommandFailed { .. }
            | Fact::ContextUpdated { .. }
            | Fact::StepExited { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => {}
        }
    }
    effects
}

fn issues(event: &Event, command: CommandId) -> bool {
    matches!(event.fact, Fact::CommandIssued(_)) && command == event.id.into()
}
