//! Work outside the event log that committed events require.

use std::sync::Arc;

use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{CommandId, Event, Fact, StepOutcome};

use crate::{Execution, Status};

/// Work to perform once the events that require it are durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Dispatches a pending command to a worker.
    Dispatch {
        command: CommandId,
        /// Worker that claimed the command in the same transaction, if any.
        claimed_by: Option<Arc<str>>,
    },
    /// Asks the worker that runs this command to stop.
    Stop { command: CommandId },
    /// Notifies waiters that the execution ended.
    Finish { status: Status },
}

/// Returns the work that `events` require. `state` is the state after the events.
pub fn effects_of(state: &Execution, events: &[Arc<Event>]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (place, event) in events.iter().enumerate() {
        match &event.fact {
            Fact::CommandIssued(_) => {
                effects.push(Effect::Dispatch { command: event.id.into(), claimed_by: None });
            }
            // The control plane runs this command itself; no worker is needed.
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
            // that was issued after the failure belongs to the final step.
            Fact::StepExited {
                outcome: StepOutcome::Failed { handled: false, drains: false, .. },
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
