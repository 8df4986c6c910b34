//! Accepts the answer a parked command waits for, from its child execution or from outside.

use noetl_model::event::ParkReason;

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::{Answer, AnswerSource};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Answer) -> Result<(), Rejection> {
    draft.known()?;
    let open = draft.state.open_command(input.command).ok_or(Rejection::CommandFinished)?;
    let is_awaited = match (&open.parked, &input.from) {
        (Some(ParkReason::Child(child)), AnswerSource::Child(from)) => child.execution == *from,
        (Some(ParkReason::Callback(callback)), AnswerSource::Token(token)) => {
            is_same(&callback.token, token)
        }
        (Some(ParkReason::Callback(_)), AnswerSource::Trusted) => true,
        _ => false,
    };
    if !is_awaited {
        return Err(Rejection::NotAwaited);
    }
    let issued = open.issued.clone();
    draft.actor = input.actor;
    draft.control_tool_ended(input.command, &issued, input.outcome, input.reference);
    draft.settle();
    Ok(())
}

/// Compares two tokens in constant time, so the duration does not reveal where they differ.
fn is_same(known: &str, answered: &str) -> bool {
    let differs = known.bytes().zip(answered.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    known.len() == answered.len() && differs == 0
}
