//! Takes claimed commands, runs their tools, reports how they ended.
//!
//! Every command that was taken is reported exactly once, whatever its tool does: a tool that
//! panics is a failure of that step, not of the worker. [`Performer`] runs a command wherever it
//! came from: one call of a tool, a pipeline of tasks, or a loop of pipelines. [`Worker`] is the
//! source of commands that shares a process with its control plane; remote sources have their place
//! beside it.

mod call;
mod in_process;
mod keychain;
mod looped;
mod perform;
mod pipeline;
mod secrets;
mod services;
mod tokens;
mod values;

pub use in_process::Worker;
pub use perform::{Command, Performer};
pub use services::{NoServices, Services};
pub use values::{LoadError, Values};
