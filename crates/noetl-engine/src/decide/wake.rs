//! Fires the timer of a parked command. A late or repeated timer changes nothing.

use noetl_model::event::Parked;
use noetl_model::{Failure, FailureKind};

use super::{Draft, Refusal, Wake};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: &Wake) -> Result<(), Refusal> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    match open.parked.clone() {
        Some(Parked::Until(at)) if at == input.at => {
            let data = serde_json::json!({ "status": "ok", "until": at });
            draft.own_ended(input.command, &issued, Ok(data), None);
        }
        Some(Parked::Retry(at)) if at == input.at => draft.begin_own(input.command, &issued),
        Some(Parked::Child(child)) if child.until == Some(input.at) => {
            let message = format!("execution {} did not end in time", child.execution);
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.own_ended(input.command, &issued, Err(failure), None);
        }
        Some(Parked::Callback(callback)) if callback.until == input.at => {
            let message = format!("no answer came for step '{}' in time", issued.step);
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.own_ended(input.command, &issued, Err(failure), None);
        }
        _ => return Ok(()),
    }
    draft.settle();
    Ok(())
}
