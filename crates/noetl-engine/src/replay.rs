//! Folds the rows of one event log into the state of executions, stages, frames, commands, loops,
//! and business objects.
//!
//! This is the read model of the API, not the engine's state: it accepts every row, of any origin
//! and however incomplete, and never fails. [`ReplayState::apply`] folds one event at a time, in
//! order of event IDs, and stores nothing but the state; [`ReplayState::seal`] adds checksums over
//! the [canonical](canonical::text) form, which are the same on every machine that folds the log.

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
pub use frame::ReplayFrame;
pub use loops::ReplayLoop;
pub use reference::{PayloadRef, PayloadSummary};
pub use seed::{ReplayBase, ReplaySeed, ReplaySnapshot, SeedError};
pub use stage::Stage;
pub use state::{Projection, ReplayScope, ReplayState, UnknownProjection};
