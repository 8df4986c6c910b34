//! Commands run to completion by an executor with scripted tools.

#![allow(
    clippy::unwrap_used,
    reason = "helpers are part of the tests, and a test that cannot go on should stop"
)]

mod ends;
mod fixture;
mod loops;
mod pipelines;
mod secrets;
mod values;
