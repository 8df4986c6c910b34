//! Process groups: a step's program and its descendants, which are stopped together.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Time between SIGTERM and SIGKILL. Long enough to close a connection or remove a lock file, and
/// short enough not to occupy a worker's slot.
const GRACE: Duration = Duration::from_secs(1);

/// A program and its descendants, as long as they stay in its process group.
///
/// Dropping the group kills all its processes, so a dropped call leaves nothing running. The
/// runtime then reaps the leader.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts `command` as the leader of a new process group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, id })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the leader, then kills the processes it left in the background.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        self.id = None;
        status
    }

    /// Kills the group with SIGKILL.
    ///
    /// The kernel doesn't reuse a group ID while the group has a member, and it assigns IDs in
    /// sequence. Right after the leader was reaped, the ID therefore belongs to this group or to
    /// none.
    pub(crate) fn kill(&self) {
        if let Some(id) = self.id {
            // The only possible error is that the group is empty.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// Sends SIGTERM to the group, kills it after [`GRACE`], and reaps the leader.
    pub(crate) async fn stop(&mut self) {
        if let Some(id) = self.id {
            let _ = kill_process_group(id, Signal::TERM);
        }
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.kill();
        }
        let _ = self.wait().await;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Describes the exit status of a program, as the predicate of a sentence.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("was killed by signal {signal} ({name})"),
            None => format!("was killed by signal {signal}"),
        },
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// Returns the exit code as a shell reports it: 128 plus the signal number for a killed program.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 12] = [
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::HUP, "SIGHUP"),
        (Signal::ILL, "SIGILL"),
        (Signal::INT, "SIGINT"),
        (Signal::KILL, "SIGKILL, often for lack of memory"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU, out of CPU time"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    let entry = NAMES.iter().find(|(known, _)| known.as_raw() == signal);
    entry.map(|(_, name)| *name)
}
