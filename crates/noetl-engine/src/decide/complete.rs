//! A command ended well (rule R3). The first terminal report decides; later ones change nothing.

use noetl_model::{Fact, Value};

use super::{Complete, Draft, Refusal};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Complete) -> Result<(), Refusal> {
    draft.known()?;
    let Some(open) = draft.state.open_command(input.command) else { return Ok(()) };
    let issued = open.issued.clone();
    let (command, step) = (input.command, issued.step.clone());
    let answer = match (input.data, &input.reference) {
        (None, Some(_)) => Some(Value::Null),
        (data, _) => data,
    };
    if let Some(data) = answer
        && open.answer.is_none()
    {
        let reference = input.reference;
        draft.record(Fact::CallDone { command, step: step.clone(), data, reference });
    }
    if !input.is_final {
        return Ok(());
    }
    draft.record(Fact::CommandCompleted { command, step });
    draft.exit_done(&issued.step, issued.generation);
    draft.settle();
    Ok(())
}
