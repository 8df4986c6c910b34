//! Fires the timer of a parked command. A late or repeated timer changes nothing.

use noetl_model::event::ParkReason;
use noetl_model::{Failure, FailureKind};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Wake;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: &Wake) -> Result<(), Rejection> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    match open.parked.clone() {
        Some(ParkReason::Until(at)) if at == input.at => {
            let data = serde_json::json!({ "status": "ok", "until": at });
            draft.control_tool_ended(input.command, &issued, Ok(data), None);
        }
        Some(ParkReason::Retry(at)) if at == input.at => {
            draft.park_control_tool(input.command, &issued)
        }
        Some(ParkReason::Child(child)) if child.until == Some(input.at) => {
            let message = format!("execution {} did not end in time", child.execution);
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.control_tool_ended(input.command, &issued, Err(failure), None);
        }
        Some(ParkReason::Callback(callback)) if callback.until == input.at => {
            let message = format!("no answer came for step '{}' in time", issued.step);
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.control_tool_ended(input.command, &issued, Err(failure), None);
        }
        _ => return Ok(()),
    }
    draft.settle();
    Ok(())
}
