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

/// What the names of workers inside a process of the store begin with, and are when it has one owner.
pub const LOCAL_WORKER: &str = "local";

/// Whether a worker of this name is outside the processes of the store, so that nothing but a lease
/// tells whether it is still there.
pub fn is_elsewhere(worker: &str) -> bool {
    let is_local = worker
        .strip_prefix(LOCAL_WORKER)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    !is_local && worker != crate::parked::CONTROL_PLANE
}

/// The pool that the path of a playbook names; `None` is the default one.
pub fn pool_of_path(path: &str) -> Option<&'static str> {
    let (first, _) = path.split_once('/')?;
    ["system", "subscription"].into_iter().find(|pool| *pool == first)
}

/// The textual command id of the wire: `<execution>:<step>:<event>`.
pub fn command_name(execution: ExecutionId, step: &str, command: CommandId) -> String {
    format!("{execution}:{step}:{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_inside_are_told_from_those_elsewhere() {
        for inside in ["local", "local:machine/3:1", "control-plane"] {
            assert!(!is_elsewhere(inside), "{inside}");
        }
        for elsewhere in ["worker-1", "localhost-7", "", "Local"] {
            assert!(is_elsewhere(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_path_names_a_pool_by_its_first_part() {
        assert_eq!(pool_of_path("system/cleanup"), Some("system"));
        assert_eq!(pool_of_path("subscription/orders/new"), Some("subscription"));
        for plain in ["system", "systems/a", "a/system/b", ""] {
            assert_eq!(pool_of_path(plain), None, "{plain}");
        }
    }
}
