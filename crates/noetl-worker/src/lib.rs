//! Takes claimed commands, runs their tools, reports how they ended.
//!
//! Every command that was taken is reported exactly once, whatever its tool does: a tool that
//! panics is a failure of that step, not of the worker. Task pipelines and remote sources of
//! commands have their place here beside the in-process one.

mod in_process;

pub use in_process::Worker;
