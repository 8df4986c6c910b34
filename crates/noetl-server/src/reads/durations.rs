//! How long things took, as far as a stretch of a log tells.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::{CommandId, Event, Fact, Timestamp};
use noetl_store::ExecutionRow;

/// What began in the stretch of a log that was read so far. Beginnings before it are not known.
#[derive(Default)]
pub(super) struct Durations {
    issued: HashMap<CommandId, Timestamp>,
    entered: HashMap<(Arc<str>, u32), Timestamp>,
}

impl Durations {
    /// Returns how long what ends with the next event of the stretch took, in seconds.
    pub(super) fn of(&mut self, event: &Event, of: &ExecutionRow) -> Option<f64> {
        let began = match &event.fact {
            Fact::CommandIssued(_) => {
                self.issued.insert(event.id.into(), event.at);
                None
            }
            Fact::StepEntered { step, generation, .. } => {
                self.entered.insert((step.clone(), *generation), event.at);
                None
            }
            Fact::CallDone { command, .. }
            | Fact::CallFailed { command, .. }
            | Fact::CommandCompleted { command, .. }
            | Fact::CommandFailed { command, .. }
            | Fact::CommandExpired { command, .. }
            | Fact::CommandCancelled { command, .. } => self.issued.get(command).copied(),
            Fact::StepExited { step, generation, .. } => {
                self.entered.get(&(step.clone(), *generation)).copied()
            }
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => Some(of.started_at),
            _ => None,
        };
        began.map(|began| event.at.since(began).as_secs_f64())
    }
}
