//! Workflow engine: decides the events that follow from an execution's state and one input. Pure:
//! no clock, no I/O, no randomness.
//!
//! [`Execution::apply`] folds the event log into state. [`decide`] turns state and one input into a
//! [`Decision`]: the events to append, and the command rows, timers, effects, and spans they imply.
//! The caller commits the decision and performs its effects only once it is durable. The engine
//! records the outcome of each condition it evaluates; replay never evaluates conditions.

mod apply;
mod consequences;
mod decide;
mod decision;
mod draft;
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
pub use decision::{ClaimFor, Decision, DecisionEnv, ExecutionLimits, Rejection};
pub use effects::Effect;
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
pub use spans::OpenSpan;
pub use timers::{ChildOutcome, Timer, TimerKind};
pub use values::{VALUE_BYTES_MAX, VALUES_BYTES_MAX, ValueLimits};
pub use why::{PendingWait, WaitKind, pending_waits};
