//! Whether a machine can isolate steps as asked, found out by isolating a program that looks around.

use std::path::Path;
use std::process::Stdio;

use super::{Isolation, User, is_cgroup};
use crate::workdir::WorkDir;

/// Why steps cannot be isolated as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationError {
    /// What is asked for and cannot be had.
    pub message: String,
    /// What would help.
    pub hint: Option<&'static str>,
}

/// Says what it sees, line by line. Its own name for its control group is below the root of all.
const LOOK: &str = r#"id -u; id -g; grep -cv '^ *lo:\||' /proc/self/net/dev || true
ls -A "$TMPDIR/.." | grep -c . || true
ulimit -v; ulimit -t; (: >proof) && echo writable
cat /proc/self/cgroup"#;

pub(super) async fn prove(asked: &Isolation, base: &Path) -> Result<(), IsolationError> {
    if asked.is_off() {
        return Ok(());
    }
    sensible(asked)?;
    let failed = |message: String| IsolationError { message, hint: None };
    let dir = WorkDir::fresh(base).map_err(|failure| failed(failure.message))?;
    asked.hand_over(&dir).map_err(|failure| failed(failure.message))?;
    let mut command = asked.command(Path::new("sh"), dir.path(), base, dir.path());
    command.args(["-c", LOOK]).stdin(Stdio::null()).env("TMPDIR", dir.path());
    let output = command.output().await;
    let output = output.map_err(|error| failed(format!("{}: {error}", names(asked))))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or("without a word").to_owned();
        return Err(IsolationError { message: format!("{}: {last}", names(asked)), hint: hint() });
    }
    let mut lines = said.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (uid, gid, devices, places) = (next(), next(), next(), next());
    let (memory, cpu, writable) = (next(), next(), next());
    let differs = |what: &str, seen: &str| {
        Err(failed(format!("{what} was asked for, but a program that was isolated so sees {seen}")))
    };
    if let Some(user) = asked.user
        && [uid.parse(), gid.parse()] != [Ok(user.uid), Ok(user.gid)]
    {
        return differs("another user", &format!("user {uid} and group {gid}"));
    }
    if asked.no_network && devices != "0" {
        return differs("no network", &format!("{devices} devices"));
    }
    if asked.private_tmp && places != "1" {
        return differs("a directory for temporary files of its own", &format!("{places} in it"));
    }
    if asked.memory_max.is_some_and(|limit| memory != (limit / 1024).to_string()) {
        return differs("a limit of memory", memory);
    }
    if asked.cpu_seconds_max.is_some_and(|limit| cpu != limit.to_string()) {
        return differs("a limit of CPU time", cpu);
    }
    if writable != "writable" {
        return differs("a directory of its own", "one it cannot write to");
    }
    if let Some(name) = asked.cgroup.as_deref().and_then(Path::file_name)
        && !lines.any(|line| line.ends_with(&format!("/{}", name.to_string_lossy())))
    {
        return differs("a control group", "another");
    }
    Ok(())
}

/// What is asked for and makes no sense, whatever the machine.
fn sensible(asked: &Isolation) -> Result<(), IsolationError> {
    let refused = |message: &str, hint| Err(IsolationError { message: message.to_owned(), hint });
    let is_root = rustix::process::geteuid().is_root();
    match asked.user {
        Some(User { uid: 0, .. }) => return refused("steps cannot be isolated as root", None),
        Some(_) if !is_root => {
            let message = "only a worker that is root can run steps as another user";
            return refused(message, Some("start the worker as root, or as the steps' user"));
        }
        None if is_root => {
            let message = "steps that are root leave every other isolation behind";
            return refused(
                message,
                Some("name the steps' user too: --step-user, NOETL_STEP_USER"),
            );
        }
        Some(_) | None => {}
    }
    if let Some(cgroup) = &asked.cgroup
        && !is_cgroup(cgroup).unwrap_or(false)
    {
        let message = format!("{} is no control group of version 2", cgroup.display());
        return refused(&message, Some("make it, and let the worker's user write to cgroup.procs"));
    }
    Ok(())
}

fn names(asked: &Isolation) -> String {
    let all = [
        (asked.user.is_some(), "another user"),
        (asked.no_network, "no network"),
        (asked.private_tmp, "private temporary files"),
        (asked.memory_max.is_some(), "a limit of memory"),
        (asked.cpu_seconds_max.is_some(), "a limit of CPU time"),
        (asked.processes_max.is_some(), "a limit of processes"),
        (asked.cgroup.is_some(), "a control group"),
    ];
    let named: Vec<&str> = all.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    format!("steps cannot have what is asked for ({}) on this machine", named.join(", "))
}

fn hint() -> Option<&'static str> {
    Some("unshare, setpriv and prlimit (util-linux) are needed, and the right to make namespaces")
}
