//! Answers that are read from event logs: replayed states, snapshots for external consumers, ranges
//! of events, aggregate numbers, and the check of a log's consistency.

mod event_pages;
mod overview;
mod projections;
mod replay;
mod service;
mod verify;

pub use event_pages::{EventPages, EventRange};
pub use overview::{Overview, Stats};
pub use projections::{ProjectionProgress, Projections};
pub use replay::{
    AdvancedState, ORGANIZATION, PayloadLabel, PayloadResolution, Payloads, PayloadsSummary,
    Replay, ReplayRequest, Replayed, Resolution,
};
pub use service::Views;
pub use verify::{Inconsistency, VerifyReport, verify};
