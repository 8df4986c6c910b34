//! Tools that steps can run, one module each, behind the [`Tool`] trait.
//!
//! A tool receives a rendered [`ToolCall`] and returns a value or a [`Failure`] that policies match on.
//! All processes that a tool starts have ended when it returns: they are killed as a group on
//! timeout, on cancellation, and when the call is dropped. [`OutputLimits`] bounds the output that a tool
//! reads, so no step can fill the worker's memory or disk. Tools don't depend on playbooks or
//! templates. Credentials are resolved into a call's settings before its tool runs ([`auth`]).
//! Tools access the worker through [`Artifacts`] and [`CredentialSource`].

mod artifact;
pub mod auth;
mod capture;
mod config;
mod duckdb;
mod host_protocol;
mod http;
mod isolation;
mod logs;
mod nats;
mod noop;
mod options;
mod own;
mod postgres;
mod process;
mod python;
mod registry;
mod sandbox;
mod seams;
mod secrets;
mod shell;
mod sql;
mod sqlite;
pub mod step_host;
mod tool;
mod transfer;
mod workdir;

pub use artifact::Artifact;
pub use duckdb::DuckDb;
pub use http::Http;
pub use isolation::{Isolation, IsolationError, Level, TenantRules, User, UserRange};
pub use logs::{LogSink, Stream};
pub use nats::Nats;
pub use noop::Noop;
pub use options::{EnvPolicy, Environment, Options, OutputLimits};
pub use own::{AllowedDirectory, OwnFiles};
pub use postgres::{GatewaySession, GatewaySessions, NotifyHandling, Postgres, connect_postgres};
pub use python::Python;
pub use registry::ToolRegistry;
pub use seams::{Artifacts, CredentialSource, ToolCredential};
pub use secrets::SecretsTool;
pub use shell::Shell;
pub use sqlite::Sqlite;
pub use tool::{Tool, ToolCall};
pub use transfer::Transfer;
