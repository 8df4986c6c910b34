//! Keep what a worker or client said. It is shown and never drives state.

use noetl_model::Fact;

use super::{Draft, Keep, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Keep) -> Result<(), Refusal> {
    draft.known()?;
    let id = input.id.unwrap_or_else(|| (draft.moment.ids)());
    draft.record_as(id, Fact::Reported(Box::new(input.said)));
    Ok(())
}
