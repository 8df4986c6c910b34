//! Folds the rows of one log into what they say about executions, stages, frames, commands, loops
//! and business objects.
//!
//! This is the wire's read model, not the engine's state: it takes every row there is, of any
//! origin and however incomplete, and can fail on none. [`ReplayState::apply`] takes one event at
//! a time, in the order of event ids, and holds nothing but the state; [`ReplayState::seal`] adds
//! checksums over the [canonical](canonical::text) form, which are the same wherever the log is folded.

mod business;
pub mod canonical;
mod checksum;
mod command;
mod event;
mod execution;
mod frame;
mod loops;
mod meta;
mod reference;
mod seed;
mod stage;
mod state;

pub use business::BusinessObject;
pub use checksum::{Checksum, ProjectionChecksums};
pub use command::ReplayedCommand;
pub use event::ReplayEvent;
pub use execution::ReplayedExecution;
pub use frame::Frame;
pub use loops::Loop;
pub use reference::{PayloadRef, PayloadSummary};
pub use seed::{Base, ReplaySnapshot, Seed, SeedError};
pub use stage::Stage;
pub use state::{Projection, ReplayState, Scope, UnknownProjection};
