//! Isolation of steps from the machine, from the program, and from each other.
//!
//! Steps run in hosts ([`crate::step_host`]) that are confined to a [`Level`]. Before the first
//! step, the worker starts a host to probe the machine's support. A requested setting that the
//! machine doesn't support is an error, never skipped.

mod level;
mod tenants;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use level::Level;
pub(crate) use tenants::TenantUsers;
pub use tenants::{TenantRules, UserRange};

/// Isolation settings. Default: no isolation.
///
/// From level 1 on, a step's programs cannot gain privileges by executing another program
/// (`no_new_privs`), and they have no capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Isolation level of all steps.
    pub level: Level,
    /// User that steps of all tenants run as. Requires a worker that runs as root.
    pub user: Option<User>,
    /// Range of users, one per tenant. Requires a worker that runs as root.
    pub users: Option<UserRange>,
    /// Whether steps have no network, not even loopback. Requires level 2.
    pub no_network: bool,
    /// Whether `/tmp`, `/var/tmp`, `/dev/shm`, and the parent of the steps' directories are empty
    /// in-memory file systems that contain only the step's own directory and are removed with the
    /// step. Requires level 2.
    pub private_tmp: bool,
    /// Maximum address space of each process, in bytes.
    pub memory_max: Option<u64>,
    /// Maximum CPU time of each process, in seconds.
    pub cpu_seconds_max: Option<u64>,
    /// Maximum number of processes of the steps' user.
    pub processes_max: Option<u64>,
    /// Control group (version 2) that step hosts join with the worker's permissions. Its limits
    /// apply to all hosts and steps together.
    pub cgroup: Option<PathBuf>,
}

/// User and group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Error of an unavailable isolation setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationError {
    /// Unavailable level or setting, and the reason.
    pub message: String,
    /// Advice for the operator, if available.
    pub hint: Option<&'static str>,
}

impl Isolation {
    /// Returns `true` if steps run without isolation.
    pub fn is_off(&self) -> bool {
        self.level == Level::None
    }

    /// Returns the command line that starts `program` with the resource limits.
    pub(crate) fn limited(&self, program: Vec<String>) -> Vec<String> {
        let mut words = Vec::new();
        let limits =
            [("as", self.memory_max), ("cpu", self.cpu_seconds_max), ("nproc", self.processes_max)];
        if limits.iter().any(|(_, limit)| limit.is_some()) {
            words.push("prlimit".to_owned());
            let set = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
            words.extend(set.map(|(name, limit)| format!("--{name}={limit}:{limit}")));
            words.push("--".to_owned());
        }
        words.extend(program);
        words
    }

    /// Returns `true` if a step's home and temporary files are in its own directory, because it
    /// cannot use the worker's.
    pub(crate) fn moves_home(&self) -> bool {
        self.user.is_some() || self.users.is_some() || self.private_tmp
    }

    /// Rejects settings that are invalid on every machine.
    pub(crate) fn check(&self) -> Result<(), IsolationError> {
        let refused = |message: String, hint| Err(IsolationError { message, hint });
        let is_root = rustix::process::geteuid().is_root();
        let has_user = self.user.is_some() || self.users.is_some();
        let as_root = self.user.is_some_and(|user| user.uid == 0)
            || self.users.is_some_and(|users| users.first == 0);
        if as_root {
            return refused("steps cannot be isolated as root".to_owned(), None);
        }
        if has_user && !is_root {
            let message = "only a worker that is root can run steps as another user".to_owned();
            return refused(message, Some("start the worker as root, or as the steps' user"));
        }
        let limits = self.memory_max.or(self.cpu_seconds_max).or(self.processes_max);
        let is_bound =
            self.no_network || self.private_tmp || limits.is_some() || self.cgroup.is_some();
        if is_root && !has_user && is_bound {
            let message = "steps that are root leave every other isolation behind".to_owned();
            let hint = "name the steps' user too: --step-user, NOETL_STEP_USER";
            return refused(message, Some(hint));
        }
        if self.level == Level::User && !has_user {
            let message = "isolation level 3 needs users for steps".to_owned();
            let hint = "name them: --step-user or --step-users, as root";
            return refused(message, Some(hint));
        }
        if (self.no_network || self.private_tmp) && self.level < Level::Namespaces {
            let message =
                "no network and private temporary files need isolation level 2".to_owned();
            return refused(message, Some("namespaces are needed: ask for --step-isolation 2"));
        }
        if let Some(cgroup) = &self.cgroup
            && !is_cgroup(cgroup)
        {
            let message = format!("{} is no control group of version 2", cgroup.display());
            return refused(
                message,
                Some("make it, and let the worker's user write to cgroup.procs"),
            );
        }
        Ok(())
    }
}

/// Returns `true` if `path` is a control group of version 2.
fn is_cgroup(path: &Path) -> bool {
    path.join("cgroup.procs").exists()
}
