//! Cancels an execution: terminal at once. Workers are asked to stop its commands; their late
//! completions change nothing.

use noetl_model::Fact;

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Cancel;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Cancel) -> Result<(), Rejection> {
    draft.running()?;
    draft.cancel_commands(|_| true);
    draft.actor = input.actor;
    draft.record(Fact::PlaybookCancelled { reason: input.reason });
    Ok(())
}
