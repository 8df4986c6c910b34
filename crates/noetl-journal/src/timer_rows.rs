//! Timers in their stored form.

use std::time::Duration;

use noetl_engine::{Timer, TimerKind};
use noetl_model::{TimerId, Value};
use noetl_store::{NewTimer, TimerRow};

/// Kind of the timer after which a failing execution abandons the commands it stopped. It has no
/// payload.
pub const ABANDON: &str = "abandon";

/// Clock skew between a process and the database that does not delay immediate timers. Timers that
/// are overdue by more fire first.
const AHEAD_MAX: Duration = Duration::from_secs(600);

/// Returns the row for a timer that the engine requests.
pub(crate) fn row(id: TimerId, timer: Timer) -> NewTimer {
    let Timer { target, at, kind } = timer;
    let payload = match kind {
        TimerKind::Abandon => Value::Null,
        _ => serde_json::to_value(&kind).expect("maps with text keys always have a JSON form"),
    };
    let at = if is_at_once(&kind) { at.minus(AHEAD_MAX) } else { at };
    NewTimer { id, kind: name(&kind).to_owned(), target, at, payload }
}

/// Returns the timer's action, or an error if this version does not know it.
pub(crate) fn kind(row: &TimerRow) -> Result<TimerKind, serde_json::Error> {
    if row.kind == ABANDON {
        return Ok(TimerKind::Abandon);
    }
    serde_json::from_value(row.payload.clone())
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
        | TimerKind::Abandon
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
        TimerKind::Abandon => ABANDON,
        TimerKind::StartChild { .. } => "start_child",
        TimerKind::ChildEnded { .. } => "child_ended",
        TimerKind::CancelChild { .. } => "cancel_child",
        TimerKind::Notify { .. } => "notify",
    }
}
