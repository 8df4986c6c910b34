//! Expires the lease of a command. The engine closes the command and issues a new one with a new
//! ID, so a late completion from the previous worker changes nothing.

use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::{CommandState, Fact, Failure, FailureKind};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Expire;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Expire) -> Result<(), Rejection> {
    draft.running()?;
    let open = draft.state.open_command(input.command).ok_or(Rejection::CommandFinished)?;
    // A pending or parked command has no lease.
    if open.state == CommandState::Pending || open.parked.is_some() {
        return Ok(());
    }
    let issued = open.issued.clone();
    let (command, step) = (input.command, issued.step.clone());
    if open.answer.is_some() {
        // The worker reported the tool's result before the lease expired; it decides the step
        // without another attempt.
        draft.completed(command, &issued);
    } else if draft.state.is_failing() {
        draft.record(Fact::CommandCancelled { command, step });
    } else {
        draft.record(Fact::CommandExpired { command, step, reason: input.reason.clone() });
        let once = !issued.idempotent;
        if !input.may_have_run || (issued.attempt < input.attempts_max && !once) {
            let again =
                CommandSpec { attempt: issued.attempt.saturating_add(1), ..(*issued).clone() };
            draft.record(Fact::CommandIssued(Arc::new(again)));
        } else {
            let message = if once {
                format!("lost its worker, and its tool may not run twice: {}", input.reason)
            } else {
                format!("lost its worker {} times: {}", issued.attempt, input.reason)
            };
            draft.lost(&issued, Failure::new(FailureKind::WorkerLost, message));
        }
    }
    draft.settle();
    Ok(())
}
