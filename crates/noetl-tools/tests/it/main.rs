//! The tools against real processes and a real local server.

#![allow(
    clippy::unwrap_used,
    reason = "helpers are part of the tests, and a test that cannot go on should stop"
)]

mod harness;
mod http;
mod noop;
mod python;
mod python_isolation;
mod python_processes;
mod shell;
