//! Commands: units of work that workers claim and run.

use crate::{CommandId, ExecutionId};

/// Pool of commands that don't name a pool.
pub const DEFAULT_POOL: &str = "shared";

/// Maximum number of attempts of a step run whose remote worker was lost. After the last one, the
/// step fails with `worker_lost`.
pub const ATTEMPTS_MAX: u32 = 3;

/// Maximum number of attempts of a step run whose local worker ended with its process.
///
/// Higher than [`ATTEMPTS_MAX`], because operators cause most restarts. The limit keeps a step that
/// crashes its process from doing so indefinitely.
pub const ATTEMPTS_OVER_RESTARTS_MAX: u32 = 20;

/// State of a command. Transitions only lead toward a terminal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandState {
    /// Waits for a worker.
    Pending,
    /// Assigned to a worker that holds its lease.
    Claimed,
    /// Reported as started by the worker.
    Running,
    /// Reported as succeeded by the worker.
    Completed,
    /// Reported as failed by the worker.
    Failed,
    /// Cancelled together with its execution.
    Cancelled,
    /// Lost its lease. A new command replaces it, or its step fails.
    Expired,
}

impl CommandState {
    /// Returns the text used in stores and on the wire.
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

    /// Returns the state with this stored text, or `None` if the text is unknown.
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

    /// Returns `true` if no transition leaves this state.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Claimed | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired => true,
        }
    }

    /// Returns the stage of the state. A command only ever moves to a later stage, so a terminal
    /// command stays terminal, and a claim recorded after the start does not undo the start.
    pub const fn stage(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Claimed => 1,
            Self::Running => 2,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired => 3,
        }
    }
}

/// Name prefix of local workers, which run inside a process of the store. The full name if one
/// process owns the store.
pub const LOCAL_WORKER: &str = "local";

/// Returns `true` if `worker` is remote: outside every process of the store, so that only a lease
/// shows whether it is alive.
pub fn is_remote_worker(worker: &str) -> bool {
    let is_local = worker
        .strip_prefix(LOCAL_WORKER)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    !is_local && worker != crate::parked::CONTROL_PLANE
}

/// Returns the pool that a playbook path selects by its first segment, or `None` for the default
/// pool.
pub fn pool_of_path(path: &str) -> Option<&'static str> {
    let (first, _) = path.split_once('/')?;
    ["system", "subscription"].into_iter().find(|pool| *pool == first)
}

/// Returns the textual command ID of the wire: `<execution>:<step>:<event>`.
pub fn command_name(execution: ExecutionId, step: &str, command: CommandId) -> String {
    format!("{execution}:{step}:{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_and_remote_workers_are_distinguished_by_name() {
        for inside in ["local", "local:machine/3:1", "control-plane"] {
            assert!(!is_remote_worker(inside), "{inside}");
        }
        for elsewhere in ["worker-1", "localhost-7", "", "Local"] {
            assert!(is_remote_worker(elsewhere), "{elsewhere}");
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
