//! Hardens the process: hides its memory from processes of the same user, and acts as init if it is
//! process 1.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode, ExitStatus};

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_dumpable_behavior,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that the init process forwards to its child.
const PASSED_ON: [SignalKind; 6] = [
    SignalKind::terminate(),
    SignalKind::interrupt(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];

/// Marks the process as not dumpable: other processes of the same user can't read its memory,
/// environment, or descriptors, and a crash writes no core file.
pub(crate) fn hide() {
    // Linux never rejects this call; systems without it have nothing to protect.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Acts as init if this is process 1 of a container: runs the program as a child, reaps orphaned
/// processes, and forwards signals. Returns the child's exit code, or `None` for any other process.
pub(crate) fn supervise_as_init() -> Option<ExitCode> {
    if getpid() != Pid::INIT {
        return None;
    }
    // If the child can't be started, the program runs in this process.
    run_below().ok()
}

fn run_below() -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut ended = signal(SignalKind::child())?;
        let (sender, mut signals) = mpsc::channel(PASSED_ON.len());
        for kind in PASSED_ON {
            let (mut listener, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                while listener.recv().await.is_some() && sender.send(kind).await.is_ok() {}
            });
        }
        let mut command = Command::new("/proc/self/exe");
        command.args(std::env::args_os().skip(1));
        let has_terminal = io::stdin().is_terminal();
        if !has_terminal {
            // A terminal signals the whole process group. Otherwise only this process forwards
            // signals.
            command.process_group(0);
        }
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::Other)?;
        loop {
            let number = tokio::select! {
                _ = ended.recv() => None,
                kind = signals.recv() => kind.map(|kind| kind.as_raw_value()),
            };
            if let Some(signal) = number.and_then(Signal::from_named_raw)
                && !(has_terminal && signal == Signal::INT)
            {
                let _ = kill_process(pid, signal);
            }
            while let Ok(Some((one, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                if one == pid {
                    return Ok(code(ExitStatus::from_raw(status.as_raw())));
                }
            }
        }
    })
}

/// Returns the exit code as a shell reports it: 128 plus the number of a fatal signal.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
