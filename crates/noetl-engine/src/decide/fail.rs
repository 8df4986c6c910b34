//! Accepts the failure of a command (rule R3).

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Fail;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Fail) -> Result<(), Rejection> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    draft.write_context(&issued, input.ctx, input.step);
    draft.failed(input.command, &issued, input.failure);
    draft.settle();
    Ok(())
}
