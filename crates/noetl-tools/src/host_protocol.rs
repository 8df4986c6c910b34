//! Messages between a worker, its step hosts, and the file tools that run in them.
//!
//! The worker's side is `sandbox`, the side of the host's process [`crate::step_host`].

mod task;
pub(crate) mod wire;

pub(crate) use task::{
    FileTask, Statements, ToolFrame, TransferSide, framed, read_frame, worker_gone, write_frame,
};

/// Path of the program that is valid in the mount namespace of a step.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Hidden command that starts a step host.
pub(crate) const COMMAND: &str = "step-host";

/// Argument that runs a file tool in a sandbox instead of a host.
pub(crate) const TOOL: &str = "tool";
