//! Decides what happens next. Pure: no clock, no I/O, no randomness.
//!
//! [`Execution::apply`] folds history into state, [`decide`] turns state and one input into the
//! events to record, and [`effects_of`] names the work those events call for. The caller appends
//! the events first and performs the effects only once they are durable. Conditions are evaluated
//! once, when their step ends, and the decision is recorded; replay never evaluates them again.

mod apply;
mod decide;
mod effects;
mod execution;
mod flow;
mod loaded;
mod places;
pub mod replay;
mod scope;
mod snapshot;
#[cfg(test)]
mod tests;
mod trail;
mod values;

pub use decide::{
    Abandon, Begin, Cancel, Claim, Complete, Expire, Fail, Input, Keep, Moment, Refusal, Start,
    decide,
};
pub use effects::{Effect, effects_of};
pub use execution::{Execution, OpenCommand, Status, Summary};
pub use loaded::Loaded;
pub use noetl_playbook::template::Place;
pub use places::places_needed;
pub use snapshot::{SNAPSHOT_LOG_BYTES_MIN, SnapshotError, snapshot_is_due};
pub use values::{Limits, VALUE_BYTES_MAX, VALUES_BYTES_MAX};
