//! Durations of commands, steps, and executions, computed from a range of a log.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::{CommandId, Event, Fact, Timestamp};
use noetl_store::ExecutionRow;

/// Start times seen in the range so far. Starts before the range are unknown.
#[derive(Default)]
pub(super) struct Durations {
    issued: HashMap<CommandId, Timestamp>,
    entered: HashMap<(Arc<str>, u32), Timestamp>,
}

impl Durations {
    /// Records the next event of the range. If it ends a command, step, or execution, returns the
    /// duration in seconds.
    pub(super) fn record(&mut self, event: &Event, of: &ExecutionRow) -> Option<f64> {
        let began = match &event.fact {
            Fact::CommandIssued(_) => {
                self.issued.insert(event.id.into(), event.at);
                None
            }
            Fact::StepEntered { step, run, .. } => {
                self.entered.insert((step.clone(), *run), event.at);
                None
            }
            Fact::CallDone { command, .. }
            | Fact::CallFailed { command, .. }
            | Fact::CommandCompleted { command, .. }
            | Fact::CommandFailed { command, .. }
            | Fact::CommandExpired { command, .. }
            | Fact::CommandCancelled { command, .. } => self.issued.get(command).copied(),
            Fact::StepExited { step, run, .. } => self.entered.get(&(step.clone(), *run)).copied(),
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => Some(of.started_at),
            _ => None,
        };
        began.map(|began| event.at.since(began).as_secs_f64())
    }
}
