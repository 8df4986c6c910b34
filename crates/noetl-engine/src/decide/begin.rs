//! Records that a worker started a command. A repeated or late report changes nothing.

use noetl_model::{CommandState, Fact};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::MarkStarted;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: MarkStarted) -> Result<(), Rejection> {
    draft.known()?;
    let Some(command) = draft.state.open_command(input.command) else { return Ok(()) };
    let holder = command.worker.clone();
    if command.state == CommandState::Running || holder.is_some_and(|w| w != input.worker) {
        return Ok(());
    }
    let step = command.issued.step.clone();
    let MarkStarted { command, worker } = input;
    draft.record(Fact::CommandStarted { command, step, worker });
    Ok(())
}
