//! Records that a worker started a command. A repeated or late report changes nothing.

use noetl_model::{CommandState, Fact};

use super::{Begin, Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Begin) -> Result<(), Refusal> {
    draft.known()?;
    let Some(command) = draft.state.open_command(input.command) else { return Ok(()) };
    let holder = command.worker.clone();
    if command.state == CommandState::Running || holder.is_some_and(|w| w != input.worker) {
        return Ok(());
    }
    let step = command.issued.step.clone();
    let Begin { command, worker } = input;
    draft.record(Fact::CommandStarted { command, step, worker });
    Ok(())
}
