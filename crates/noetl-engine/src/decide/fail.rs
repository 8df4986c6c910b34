//! A command ended badly (rule R3).

use noetl_model::Fact;

use super::{Draft, Fail, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Fail) -> Result<(), Refusal> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    let Fail { command, failure } = input;
    let step = issued.step.clone();
    draft.record(Fact::CommandFailed { command, step, failure: failure.clone() });
    draft.exit_failed(&issued.step, issued.generation, failure);
    draft.settle();
    Ok(())
}
