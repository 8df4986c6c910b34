//! Workflow engine: decides the events that follow from an execution's state and one input. Pure:
//! no clock, no I/O, no randomness.
//!
//! [`Execution::apply`] folds the event log into state, [`decide`] turns state and one input into
//! the events to record, and [`effects_of`] lists the work those events require. The caller appends
//! the events first and performs the effects only once the events are durable. The engine records
//! the outcome of each condition it evaluates; replay never evaluates conditions.

mod apply;
mod decide;
mod decision;
mod effects;
mod execution;
mod flow;
pub mod fork;
mod history;
mod input;
mod loaded;
mod loops;
pub mod replay;
mod required_values;
mod scope;
mod slice;
mod snapshot;
mod spans;
#[cfg(test)]
mod tests;
mod timers;
mod undo_log;
mod values;
mod why;

pub use decide::{decide, merge};
pub use decision::{DecisionEnv, ExecutionLimits, Rejection};
pub use effects::{Effect, effects_of};
pub use execution::{Execution, ExecutionSummary, OpenCommand, Status};
pub use history::{Divergence, first_divergence};
pub use input::{
    Abandon, Answer, AnswerSource, Cancel, Claim, Complete, Expire, Fail, Finalize, Fork, Input,
    MarkStarted, RecordReport, StartInput, Timeout, Wake,
};
pub use loaded::DecisionValues;
pub use noetl_template::ValueRef;
pub use required_values::required_values;
pub use snapshot::{SNAPSHOT_LOG_BYTES_MIN, SnapshotError, snapshot_is_due};
pub use spans::{OpenSpan, spans_before, spans_of};
pub use timers::{ChildOutcome, Timer, TimerKind, timers_of};
pub use values::{VALUE_BYTES_MAX, VALUES_BYTES_MAX, ValueLimits};
pub use why::{PendingWait, WaitKind, pending_waits};
