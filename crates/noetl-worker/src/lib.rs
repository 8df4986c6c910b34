//! Runs claimed commands and reports their completions.
//!
//! A worker reports each command it claims exactly once, even if its tool panics: a panic fails the
//! step, not the worker. The exceptions are a command whose lease another worker acquired and one
//! that is stopped at the end of the shutdown grace period; the control plane reissues the latter.
//!
//! [`CommandExecutor`] runs a command independently of its source: a single tool call, a pipeline of
//! tasks, or a loop of pipelines. Commands come from a [`CommandSource`]. [`RemoteWorker`] is a
//! separate process that leases them over HTTP; `noetl-local` has the source of a worker in the
//! process of its control plane.

mod call;
mod execute;
mod executor;
mod keychain;
mod looped;
mod pipeline;
mod remote;
mod secrets;
mod services;
mod source;
mod split;
mod task;
mod tokens;
mod values;

pub use executor::CommandExecutor;
pub use remote::{DrainOutcome, RemoteOptions, RemoteWorker, Transport, WorkerMetrics};
pub use services::{NoServices, Services, no_credential};
pub use source::{CommandSource, run as run_source};
pub use task::CommandTask;
pub use values::{LoadError, ValueFetcher};
