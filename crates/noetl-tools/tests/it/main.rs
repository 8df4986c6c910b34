//! The tools against real processes, databases and local servers.

#![allow(
    clippy::unwrap_used,
    reason = "helpers are part of the tests, and a test that cannot go on should stop"
)]

#[cfg(feature = "duckdb")]
mod duckdb;
mod gateway_sessions;
mod harness;
mod http;
mod isolation;
mod kinds;
mod nats;
mod noop;
mod postgres;
mod postgres_tls;
mod python;
mod python_isolation;
mod python_processes;
mod python_script;
mod sandbox;
mod seams;
mod shell;
mod sqlite;
mod transfer;
