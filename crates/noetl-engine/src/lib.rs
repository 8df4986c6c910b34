//! Workflow engine: decides the events that follow from an execution's state and one input. Pure:
//! no clock, no I/O, no randomness.
//!
//! [`Execution::apply`] folds the event log into state, [`decide`] turns state and one input into
//! the events to record, and [`effects_of`] lists the work those events require. The caller appends
//! the events first and performs the effects only once the events are durable. The engine records
//! the outcome of each condition it evaluates; replay never evaluates conditions.

mod apply;
mod decide;
mod due;
mod effects;
mod execution;
mod flow;
pub mod fork;
mod history;
mod loaded;
mod places;
mod repeat;
pub mod replay;
mod scope;
mod slice;
mod snapshot;
mod spans;
#[cfg(test)]
mod tests;
mod trail;
mod values;
mod why;

pub use decide::{
    Abandon, Answer, AnswerFrom, Begin, Cancel, Caps, Claim, Complete, Expire, Fail, Finalize,
    Fork, Input, Keep, Moment, Refusal, Start, Timeout, Wake, decide, merge,
};
pub use due::{ChildOutcome, Due, DueKind, due_of};
pub use effects::{Effect, effects_of};
pub use execution::{Execution, OpenCommand, Status, Summary};
pub use history::{Difference, first_difference};
pub use loaded::Loaded;
pub use noetl_playbook::template::Place;
pub use places::places_needed;
pub use snapshot::{SNAPSHOT_LOG_BYTES_MIN, SnapshotError, snapshot_is_due};
pub use spans::{Ending, may_end, spans_of};
pub use values::{Limits, VALUE_BYTES_MAX, VALUES_BYTES_MAX};
pub use why::{Awaited, Outstanding, outstanding};
