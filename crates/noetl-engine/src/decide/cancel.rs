//! Cancels an execution: terminal at once. Workers are asked to stop its commands; their late
//! completions change nothing.

use noetl_model::Fact;

use crate::decision::{Decision, Rejection};
use crate::input::Cancel;

pub(super) fn decide(draft: &mut Decision<'_, '_>, input: Cancel) -> Result<(), Rejection> {
    draft.running()?;
    draft.cancel_commands(|_| true);
    draft.actor = input.actor;
    draft.record(Fact::PlaybookCancelled { reason: input.reason });
    Ok(())
}
