//! What keeps programs of steps from the machine and from each other, beyond processes of their own.
//!
//! A step's program is started through the programs every Linux has: `unshare` gives it a network and a
//! view of the disk of its own, `setpriv` takes its user and its powers away, `prlimit` limits it. Each
//! replaces itself by the next, so the step is the process that was started. [`Isolation::prove`]
//! runs all of it once: what cannot be had on this machine is known before the first step, and is never
//! left out.

mod prove;

use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use noetl_model::Failure;
use tokio::process::Command;

use crate::workdir::WorkDir;

pub use prove::IsolationError;

/// How programs of `shell` and `python` steps are kept apart. Default: not at all.
///
/// Whatever is set, a step's program can gain no powers by running another (`no_new_privs`), and has
/// none of those a privileged user has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Whom they run as; only a worker that is root can give them another user.
    pub user: Option<User>,
    /// Whether they are without a network: not even their own loopback is up.
    pub no_network: bool,
    /// Whether `/tmp`, `/var/tmp`, `/dev/shm` and the directory that steps have theirs in are empty but
    /// for the step's own directory, in memory, and gone with the step.
    pub private_tmp: bool,
    /// The address space of each process, in bytes.
    pub memory_max: Option<u64>,
    /// The CPU time of each process, in seconds.
    pub cpu_seconds_max: Option<u64>,
    /// The processes that the steps' user may have in all.
    pub processes_max: Option<u64>,
    /// A control group (version 2) they are put into; its limits hold for all of them together.
    pub cgroup: Option<PathBuf>,
}

/// A user by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// How much the directories that only one step sees may hold. They are in memory.
const PRIVATE_TMP: &str = "nosuid,nodev,size=256m,mode=1777";

/// Puts itself into the control group `$3` and, where `$4` says so, lays empty directories over those
/// that steps share: over `$2`, in which the step's own directory `$1` is put back. Goes to `$5` and
/// becomes the rest of its words. A process that writes 0 means itself; `mount -c` takes `.` for where
/// it stands, which has no name any more.
const ENTER: &str = r#"set -e
dir=$1 base=$2 cgroup=$3 tmp=$4 cwd=$5
shift 5
[ -z "$cgroup" ] || echo 0 >"$cgroup/cgroup.procs"
if [ -n "$tmp" ]; then
  cd "$dir"
  for place in /tmp /var/tmp /dev/shm "$base"; do
    [ ! -d "$place" ] || mount -t tmpfs -o "$tmp" tmpfs "$place"
  done
  mkdir -p "$dir"
  mount -c --bind . "$dir"
fi
cd "$cwd"
exec "$@""#;

impl Isolation {
    /// Whether nothing is asked for.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// A command that becomes `program`, isolated so, in `cwd`. Arguments and environment are the
    /// caller's to add; `dir` is the step's own directory, below `base`.
    pub(crate) fn command(&self, program: &Path, dir: &Path, base: &Path, cwd: &Path) -> Command {
        if self.is_off() {
            let mut command = Command::new(program);
            command.current_dir(cwd);
            return command;
        }
        let mut words: Vec<std::ffi::OsString> = Vec::new();
        if self.no_network || self.private_tmp {
            words.push("unshare".into());
            if !rustix::process::geteuid().is_root() {
                words.extend(["--user", "--map-root-user"].map(Into::into));
            }
            words.extend(self.no_network.then(|| "--net".into()));
            if self.private_tmp {
                words.extend(["--mount", "--propagation", "private"].map(Into::into));
            }
            words.push("--".into());
        }
        let cgroup = self.cgroup.clone().unwrap_or_default();
        let tmp = if self.private_tmp { PRIVATE_TMP } else { "" };
        words.extend(["sh", "-c", ENTER, "sh"].map(Into::into));
        words.extend([dir.into(), base.into(), cgroup.into(), tmp.into(), cwd.into()]);
        words.extend(["setpriv", "--no-new-privs"].map(Into::into));
        if let Some(User { uid, gid }) = self.user {
            let user = [format!("--reuid={uid}"), format!("--regid={gid}")];
            words.extend(user.map(Into::into));
            words.push("--clear-groups".into());
        }
        if self.user.is_some() || self.no_network || self.private_tmp {
            words.extend(["--bounding-set=-all", "--inh-caps=-all"].map(Into::into));
        }
        words.push("--".into());
        let limits =
            [("as", self.memory_max), ("cpu", self.cpu_seconds_max), ("nproc", self.processes_max)];
        if limits.iter().any(|(_, limit)| limit.is_some()) {
            words.push("prlimit".into());
            let said = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
            words.extend(said.map(|(name, limit)| format!("--{name}={limit}:{limit}").into()));
            words.push("--".into());
        }
        words.push(program.into());
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(dir);
        command
    }

    /// Makes the steps' user the owner of a directory.
    pub(crate) fn hand_over(&self, dir: &WorkDir) -> Result<(), Failure> {
        let Some(User { uid, gid }) = self.user else { return Ok(()) };
        chown(dir.path(), Some(uid), Some(gid)).map_err(|error| dir.refused(&error))
    }

    /// Where a program finds its home and its temporary files, when the worker's are not for it.
    pub(crate) fn places(&self, command: &mut Command, dir: &Path) {
        if self.user.is_some() || self.private_tmp {
            command.env("HOME", dir).env("TMPDIR", dir);
        }
    }

    /// Whether this machine can do what is asked for, found out by doing it once.
    pub async fn prove(&self, base: &Path) -> Result<(), IsolationError> {
        prove::prove(self, base).await
    }
}

/// Whether a control group of version 2 is there.
fn is_cgroup(path: &Path) -> io::Result<bool> {
    path.join("cgroup.procs").try_exists()
}
