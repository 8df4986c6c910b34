//! Rows of timers, as the journal writes them.

use std::time::Duration;

use noetl_engine::{Timer, TimerKind};
use noetl_model::{ExecutionId, TimerId, Timestamp, Value};
use noetl_store::NewTimer;

/// Kind of the timer after which a failing execution abandons the commands it stopped.
pub const ABANDON: &str = "abandon";

/// Clock skew between a process and the database that does not delay immediate timers. Timers that
/// are overdue by more fire first.
const AHEAD_MAX: Duration = Duration::from_secs(600);

/// Returns the timer that makes a failing execution abandon the commands it stopped.
pub(crate) fn abandon(id: TimerId, execution: ExecutionId, at: Timestamp) -> NewTimer {
    NewTimer { id, kind: ABANDON.to_owned(), target: execution, at, payload: Value::Null }
}

/// Returns the row for a timer that the engine requests.
pub(crate) fn row(id: TimerId, due: Timer) -> NewTimer {
    let Timer { target, at, kind } = due;
    let payload = serde_json::to_value(&kind).expect("maps with text keys always have a JSON form");
    let at = if is_at_once(&kind) { at.minus(AHEAD_MAX) } else { at };
    NewTimer { id, kind: name(&kind).to_owned(), target, at, payload }
}

/// Returns `true` if the timer is due now, as a message to another execution. Its time is the clock
/// of the process that decided it. A notification is not included, because it reports that time as
/// the time of its event.
fn is_at_once(kind: &TimerKind) -> bool {
    match kind {
        TimerKind::StartChild { .. }
        | TimerKind::ChildEnded { .. }
        | TimerKind::CancelChild { .. } => true,
        TimerKind::Notify { .. }
        | TimerKind::Wake { .. }
        | TimerKind::StepTimeout { .. }
        | TimerKind::AdmissionTimeout { .. }
        | TimerKind::Deadline => false,
    }
}

/// Returns the stored discriminator of a timer, for operators who read the table.
fn name(kind: &TimerKind) -> &'static str {
    match kind {
        TimerKind::Wake { .. } => "wake",
        TimerKind::StepTimeout { .. } => "step_timeout",
        TimerKind::AdmissionTimeout { .. } => "admission_timeout",
        TimerKind::Deadline => "deadline",
        TimerKind::StartChild { .. } => "start_child",
        TimerKind::ChildEnded { .. } => "child_ended",
        TimerKind::CancelChild { .. } => "cancel_child",
        TimerKind::Notify { .. } => "notify",
    }
}
