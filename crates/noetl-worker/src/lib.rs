//! Takes claimed commands, runs their tools, reports how they ended.
//!
//! Every command that was taken is reported exactly once, whatever its tool does: a tool that
//! panics is a failure of that step, not of the worker. [`Performer`] runs a command wherever it
//! came from: one call of a tool, a pipeline of tasks, or a loop of pipelines. Commands come from a
//! [`CommandSource`]: [`Worker`] shares a process with its control plane, [`RemoteWorker`] is a process
//! of its own and takes them over HTTP.

mod call;
mod in_process;
mod keychain;
mod looped;
mod perform;
mod pipeline;
mod remote;
mod secrets;
mod services;
mod source;
mod split;
mod tokens;
mod values;

pub use in_process::Worker;
pub use perform::{Command, Performer};
pub use remote::{Counters, Drained, RemoteOptions, RemoteWorker};
pub use services::{NoServices, Services};
pub use source::CommandSource;
pub use values::{LoadError, Values};
