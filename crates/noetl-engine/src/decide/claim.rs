//! Assigns a command to a worker. Claims are idempotent, and two workers never hold one command.

use noetl_model::{CommandState, Fact};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Claim;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Claim) -> Result<(), Rejection> {
    draft.running()?;
    let command = draft.state.open_command(input.command).ok_or(Rejection::CommandFinished)?;
    match (&command.state, &command.worker) {
        (CommandState::Pending, _) => {
            if !draft.is_claimable(&command.issued.step) {
                return Err(Rejection::CommandFinished);
            }
            let step = command.issued.step.clone();
            let (command, worker) = (input.command, input.worker);
            draft.record(Fact::CommandClaimed { command, step, worker });
            Ok(())
        }
        (_, Some(holder)) if *holder == input.worker => Ok(()),
        (_, Some(holder)) => Err(Rejection::ClaimedBy(holder.clone())),
        (_, None) => Err(Rejection::CommandFinished),
    }
}
