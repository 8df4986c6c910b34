//! Accepts the answer a parked command waits for, from its child execution or from outside.

use noetl_model::event::Parked;

use super::{Answer, AnswerFrom, Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Answer) -> Result<(), Refusal> {
    draft.known()?;
    let open = draft.state.open_command(input.command).ok_or(Refusal::CommandFinished)?;
    let is_awaited = match (&open.parked, &input.from) {
        (Some(Parked::Child(child)), AnswerFrom::Child(from)) => child.execution == *from,
        (Some(Parked::Callback(callback)), AnswerFrom::Token(token)) => {
            is_same(&callback.token, token)
        }
        (Some(Parked::Callback(_)), AnswerFrom::Trusted) => true,
        _ => false,
    };
    if !is_awaited {
        return Err(Refusal::NotAwaited);
    }
    let issued = open.issued.clone();
    draft.actor = input.actor;
    draft.own_ended(input.command, &issued, input.outcome, input.reference);
    draft.settle();
    Ok(())
}

/// Compares two tokens in constant time, so the duration does not reveal where they differ.
fn is_same(known: &str, given: &str) -> bool {
    let differs = known.bytes().zip(given.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    known.len() == given.len() && differs == 0
}
