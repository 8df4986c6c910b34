//! Isolation of steps from the machine, from the program, and from each other.
//!
//! Steps run in hosts ([`crate::step_host`]) that are confined to a [`Level`]. Before the first
//! step, the worker starts a host to find out what the machine allows. A requested setting that the
//! machine doesn't allow is an error, never skipped.

mod level;
mod tenants;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use level::Level;
pub(crate) use tenants::TenantUsers;
pub use tenants::{TenantRules, UserRange};

/// Settings of the isolation. Default: none.
///
/// From level 1 on, no program of a step can gain powers by running another (`no_new_privs`), and none
/// has the capabilities of a privileged user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Isolation level of all steps.
    pub level: Level,
    /// User that steps of every tenant run as; only a worker that is root can give them another.
    pub user: Option<User>,
    /// Users that tenants are given, one each; only for a worker that is root.
    pub users: Option<UserRange>,
    /// Whether they are without a network: not even their own loopback is up. From level 2.
    pub no_network: bool,
    /// Whether `/tmp`, `/var/tmp`, `/dev/shm` and the directory that steps have theirs in are empty but
    /// for the step's own directory, in memory, and gone with the step. From level 2.
    pub private_tmp: bool,
    /// The address space of each process, in bytes.
    pub memory_max: Option<u64>,
    /// The CPU time of each process, in seconds.
    pub cpu_seconds_max: Option<u64>,
    /// The processes that the steps' user may have in all.
    pub processes_max: Option<u64>,
    /// A control group (version 2) that step hosts enter with the worker's rights; its limits hold for
    /// all hosts and steps together.
    pub cgroup: Option<PathBuf>,
}

/// A user by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Why steps cannot be isolated as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationError {
    /// Requested level or setting that is not available, and the reason.
    pub message: String,
    /// Advice for the operator, if there is any.
    pub hint: Option<&'static str>,
}

impl Isolation {
    /// Returns `true` if steps run as if there were no isolation.
    pub fn is_off(&self) -> bool {
        self.level == Level::None
    }

    /// Returns the words that start `program` within the limits.
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

    /// Returns `true` if a step's home and temporary files are in its own directory, because the
    /// worker's are not for it.
    pub(crate) fn moves_home(&self) -> bool {
        self.user.is_some() || self.users.is_some() || self.private_tmp
    }

    /// Refuses settings that make no sense, whatever the machine.
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

/// Returns `true` if a control group of version 2 is there.
fn is_cgroup(path: &Path) -> bool {
    path.join("cgroup.procs").exists()
}
