//! Decisions as transcripts: a playbook and inputs in, events out.

mod commands;
mod cycles;
mod data;
mod failures;
mod harness;
mod joins;
mod places;
mod properties;
mod routing;
mod sameness;
mod snapshots;
