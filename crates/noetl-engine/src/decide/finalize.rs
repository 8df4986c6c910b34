//! Ends an execution on an operator's request: terminal at once like a cancellation, but with the
//! status completed or failed.

use noetl_model::{Fact, Failure, FailureKind, Value};

use crate::decision::Rejection;
use crate::draft::Draft;
use crate::input::Finalize;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: Finalize) -> Result<(), Rejection> {
    draft.running()?;
    draft.cancel_commands(|_| true);
    draft.actor = input.actor;
    match input.error {
        None => {
            draft.record(Fact::PlaybookCompleted { result: Value::Null, reference: None });
        }
        Some(message) => {
            let step = draft.state.current_step.clone().unwrap_or_default();
            let failure = Failure::new(FailureKind::Unknown, message);
            draft.record(Fact::PlaybookFailed { step, failure });
        }
    }
    Ok(())
}
