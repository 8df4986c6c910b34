//! Cancels an execution: terminal at once. Workers are asked to stop its commands; their late
//! completions change nothing.

use noetl_model::Fact;

use super::{Cancel, Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Cancel) -> Result<(), Refusal> {
    draft.running()?;
    draft.cancel_commands(|_| true);
    draft.actor = input.actor;
    draft.record(Fact::PlaybookCancelled { reason: input.reason });
    Ok(())
}
