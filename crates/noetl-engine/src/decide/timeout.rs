//! Fires a timeout of a step run, an admission, or the execution. A timeout of something that has
//! already ended changes nothing.

use noetl_model::{Fact, Failure, FailureKind};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Timeout;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: &Timeout) -> Result<(), Rejection> {
    draft.running()?;
    match input {
        Timeout::Step { step, run } => {
            let step_run_key = (step.clone(), *run);
            if !draft.state.running.contains_key(&step_run_key) || draft.state.is_failing() {
                return Ok(());
            }
            draft.cancel_commands(|open| open.issued.step == *step && open.issued.run == *run);
            let limit = draft.playbook.find(step).and_then(|ix| draft.playbook.step(ix).timeout);
            let limit = limit.map(|limit| format!(" of {limit:?}")).unwrap_or_default();
            let message = format!("step '{step}' took longer than its limit{limit}");
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.exit_failed(step, *run, failure);
        }
        Timeout::Admission { step, until } => {
            let tokens = draft.state.held.get(step);
            if !tokens.is_some_and(|tokens| tokens.iter().any(|token| token.until <= *until)) {
                return Ok(());
            }
            draft.record(Fact::StepDenied { step: step.clone(), tokens: 0 });
        }
        Timeout::Execution => {
            draft.cancel_commands(|_| true);
            let step = draft.state.current_step.clone().unwrap_or_default();
            let message = "the execution took longer than its deadline";
            let failure = Failure::new(FailureKind::Timeout, message);
            draft.record(Fact::PlaybookFailed { step, failure });
            return Ok(());
        }
    }
    draft.settle();
    Ok(())
}
