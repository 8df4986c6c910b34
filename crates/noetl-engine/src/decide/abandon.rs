//! A failing execution stops waiting for commands that were told to stop and did not.

use super::{Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>) -> Result<(), Refusal> {
    draft.running()?;
    if draft.state.is_failing() {
        draft.cancel_commands(|_| true);
        draft.settle();
    }
    Ok(())
}
