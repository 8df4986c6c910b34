//! A command: one unit of work handed to a worker.

use crate::{CommandId, ExecutionId};

/// The pool of commands that name no other.
pub const DEFAULT_POOL: &str = "shared";

/// How often a step's command is handed out before the step fails with `worker_lost`.
pub const ATTEMPTS_MAX: u32 = 3;

/// The same for a worker that ends with the whole process. Restarts are the operator's doing far
/// more often than the step's, so they weigh less; but a step that takes its process down with it
/// must not do so for ever.
pub const ATTEMPTS_OVER_RESTARTS_MAX: u32 = 20;

/// Where a command stands. It only ever moves towards a terminal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandState {
    /// Waiting for a worker.
    Pending,
    /// A worker holds its lease.
    Claimed,
    /// The worker said it began.
    Running,
    /// Reported done.
    Completed,
    /// Reported failed.
    Failed,
    /// Its execution was stopped.
    Cancelled,
    /// Its lease ended; another command took its place, or its step failed.
    Expired,
}

impl CommandState {
    /// The stored and wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Claimed => "CLAIMED",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::Expired => "EXPIRED",
        }
    }

    /// The state of this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [
            Self::Pending,
            Self::Claimed,
            Self::Running,
            Self::Completed,
            Self::Failed,
            Self::Cancelled,
            Self::Expired,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }

    /// Whether nothing can move it any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Claimed | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired => true,
        }
    }
}

/// The textual command id of the wire: `<execution>:<step>:<event>`.
pub fn command_name(execution: ExecutionId, step: &str, command: CommandId) -> String {
    format!("{execution}:{step}:{command}")
}
