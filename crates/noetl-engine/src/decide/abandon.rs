//! Ends a failing execution's wait for commands that did not stop when asked to.

use crate::decision::Rejection;
use crate::draft::Draft;

pub(super) fn decide(draft: &mut Draft<'_, '_>) -> Result<(), Rejection> {
    draft.running()?;
    if draft.state.is_failing() {
        // The step that runs last began after the failure and was not asked to stop, so it keeps
        // running.
        let last = draft.playbook.final_step.map(|ix| draft.playbook.step(ix).name.clone());
        draft.cancel_commands(|open| Some(&open.issued.step) != last.as_ref());
        draft.settle();
    }
    Ok(())
}
