//! A failing execution stops waiting for commands that were told to stop and did not.

use super::{Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>) -> Result<(), Refusal> {
    draft.running()?;
    if draft.state.is_failing() {
        // The step that runs last is not waited for in vain: it began after the failure.
        let last = draft.playbook.final_step.map(|ix| draft.playbook.step(ix).name.clone());
        draft.cancel_commands(|open| Some(&open.issued.step) != last.as_ref());
        draft.settle();
    }
    Ok(())
}
