//! Process groups: a step's program and all it started, stopped together.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// How long a stopped program may take to clean up before it is killed. Long enough to close a
/// connection or remove a lock file, short enough not to hold a worker's slot.
const GRACE: Duration = Duration::from_secs(1);

/// A program and its descendants, as long as those stay in its group.
///
/// Dropping it kills them all, so a call that is dropped half way leaves nothing running; the
/// runtime reaps the leader then.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    /// Starts `command` as the leader of a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, id })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the leader, then kills whatever it left in the background.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        self.id = None;
        status
    }

    /// Kills the group without further ado.
    ///
    /// A group's number stays taken while it has a member, and numbers are handed out in turn, so
    /// right after the leader was reaped the number is still this group's or nobody's.
    pub(crate) fn kill(&self) {
        if let Some(id) = self.id {
            // The only error left is that nobody is in the group any more.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// Asks the group to end, kills it when it does not, and reaps the leader.
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

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a program ended, as a sentence's second half.
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

/// The exit code as a shell would report it: 128 and the signal's number for a killed program.
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
    let found = NAMES.iter().find(|(known, _)| known.as_raw() == signal);
    found.map(|(_, name)| *name)
}
