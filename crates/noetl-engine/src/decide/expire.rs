//! A command's lease ended. It is closed for good and another takes its place, with a new id, so
//! that whatever the old holder still says changes nothing.

use std::sync::Arc;

use noetl_model::event::Issued;
use noetl_model::{CommandState, Fact, Failure, FailureKind};

use super::{Draft, Expire, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Expire) -> Result<(), Refusal> {
    draft.running()?;
    let open = draft.state.open_command(input.command).ok_or(Refusal::CommandFinished)?;
    if open.state == CommandState::Pending {
        return Ok(());
    }
    let issued = open.issued.clone();
    let (command, step) = (input.command, issued.step.clone());
    if open.answer.is_some() {
        // The tool had answered: that decides the step, nothing runs again.
        draft.record(Fact::CommandCompleted { command, step });
        draft.exit_done(&issued.step, issued.generation);
    } else if draft.state.is_failing() {
        draft.record(Fact::CommandCancelled { command, step });
    } else {
        draft.record(Fact::CommandExpired { command, step, reason: input.reason.clone() });
        if issued.attempt < input.attempts_max {
            let again = Issued { attempt: issued.attempt + 1, ..(*issued).clone() };
            draft.record(Fact::CommandIssued(Arc::new(again)));
        } else {
            let message = format!("lost its worker {} times: {}", issued.attempt, input.reason);
            let failure = Failure::new(FailureKind::WorkerLost, message);
            draft.exit_failed(&issued.step, issued.generation, failure);
        }
    }
    draft.settle();
    Ok(())
}
