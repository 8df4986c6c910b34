//! Commands run to their end by a performer, with tools that do what a test says.

#![allow(
    clippy::unwrap_used,
    reason = "helpers are part of the tests, and a test that cannot go on should stop"
)]

mod ends;
mod loops;
mod pipelines;
mod secrets;
mod stage;
mod values;
