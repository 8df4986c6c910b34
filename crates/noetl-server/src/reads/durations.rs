//! How long things took, as far as a stretch of a log tells.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_model::{CommandId, Event, Fact, Seq, Timestamp};
use noetl_store::ExecutionRow;

/// How long what ends with an event took, in seconds, by the place of the event. Beginnings before
/// the stretch are not known.
pub(super) fn of(events: &[Event], of: &ExecutionRow) -> HashMap<Seq, f64> {
    let mut issued: HashMap<CommandId, Timestamp> = HashMap::new();
    let mut entered: HashMap<(&Arc<str>, u32), Timestamp> = HashMap::new();
    let mut lasted = HashMap::new();
    for event in events {
        let began = match &event.fact {
            Fact::CommandIssued(_) => {
                issued.insert(event.id.into(), event.at);
                None
            }
            Fact::StepEntered { step, generation, .. } => {
                entered.insert((step, *generation), event.at);
                None
            }
            Fact::CallDone { command, .. }
            | Fact::CallFailed { command, .. }
            | Fact::CommandCompleted { command, .. }
            | Fact::CommandFailed { command, .. }
            | Fact::CommandExpired { command, .. }
            | Fact::CommandCancelled { command, .. } => issued.get(command).copied(),
            Fact::StepExited { step, generation, .. } => entered.get(&(step, *generation)).copied(),
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => Some(of.started_at),
            _ => None,
        };
        if let Some(began) = began {
            lasted.insert(event.seq, event.at.since(began).as_secs_f64());
        }
    }
    lasted
}
