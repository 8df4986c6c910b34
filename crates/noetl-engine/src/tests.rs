//! Decisions as transcripts: a playbook and inputs in, events out.

mod commands;
mod cycles;
mod data;
mod failures;
mod forks;
mod generated;
mod harness;
mod history;
mod joins;
mod limits;
mod loops;
mod own;
mod places;
mod properties;
mod routing;
mod sameness;
mod snapshots;
mod spans;
mod split;
