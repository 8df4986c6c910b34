//! Accepts the result of a command (rule R3). The first completion decides; later ones change
//! nothing.

use noetl_model::event::{Callback, ParkReason};
use noetl_model::{Fact, Value};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Complete;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Complete) -> Result<(), Rejection> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    let (command, step) = (input.command, issued.step.clone());
    let has_answer = open.answer.is_some();
    let is_parked = open.parked.is_some();
    let answer = match (input.data, &input.reference) {
        (None, Some(_)) => Some(Value::Null),
        (data, _) => data,
    };
    let answers = answer.is_some() || has_answer;
    if let Some(data) = answer
        && !has_answer
    {
        let (reference, run) = (input.reference, input.run);
        draft.record(Fact::CallDone { command, step: step.clone(), data, reference, run });
        draft.write_context(&issued, input.ctx, input.step);
    }
    // A parked command ends with its answer: its final report arrived before the answer did.
    if !input.is_final && !is_parked {
        return Ok(());
    }
    if !answers {
        // The tool's answer arrives separately, such as that of a job started in another system.
        if !is_parked {
            let until = draft.moment.now.plus(crate::draft::CALLBACK_WAIT);
            let token = draft.token(command);
            let on = ParkReason::Callback(Callback { token, until });
            draft.record(Fact::CommandParked { command, step, on });
        }
        return Ok(());
    }
    draft.completed(command, &issued);
    draft.settle();
    Ok(())
}
