//! Ends all processes of a step, including those that left its group, its session, or their parent.
//!
//! The host is their subreaper or process 1 of their namespace, so all of them are its descendants
//! for as long as they live: if the host has no children, no process of the step is left.

use std::collections::HashMap;
use std::fs;

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};

/// Pause between scans while killed processes have not exited.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// PID and wait status of a process that ended.
pub(super) type ExitedProcess = (Pid, WaitStatus);

/// Reaps all children that ended. Returns `true` if any child is left.
pub(super) fn reap(mut ended: impl FnMut(ExitedProcess)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(one)) => ended(one),
            Ok(None) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills and reaps all descendants except `kept`, until none is left.
pub(super) fn sweep(excluded: Option<Pid>, mut ended: impl FnMut(ExitedProcess)) {
    loop {
        let has_children = reap(&mut ended);
        if !has_children {
            return;
        }
        let left: Vec<Pid> =
            descendants().into_iter().filter(|pid| Some(*pid) != excluded).collect();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // A process that has already ended needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
        if reap(&mut ended) {
            // A signal ends the pause early, which is harmless.
            let _ = poll(&mut [], Some(&PAUSE));
        }
    }
}

/// Returns all descendants, except zombies that only their own parent can reap: they run nothing,
/// and a parent that never reaps them would prevent [`sweep`] from ending.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((is_zombie, parent)) = state_and_parent(&stat) {
            children.entry(parent).or_default().push(Process { pid, is_zombie });
        }
    }
    let own = getpid().as_raw_nonzero().get();
    let mut processes = Vec::new();
    let mut pending = vec![own];
    while let Some(parent) = pending.pop() {
        for Process { pid, is_zombie } in children.remove(&parent).into_iter().flatten() {
            pending.push(pid);
            processes.extend(Pid::from_raw(pid).filter(|_| !is_zombie || parent == own));
        }
    }
    processes
}

struct Process {
    pid: i32,
    is_zombie: bool,
}

/// Parses the zombie state and the parent from `/proc/<pid>/stat`.
fn state_and_parent(stat: &str) -> Option<(bool, i32)> {
    // The process name precedes them and may contain anything, including parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let is_zombie = words.next()? == "Z";
    Some((is_zombie, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn state_and_parent_are_parsed_after_any_process_name() {
        assert_eq!(state_and_parent("7 (sh) S 3 7 7 0"), Some((false, 3)));
        assert_eq!(state_and_parent("7 (a) Z 1 (b) R 5 7 7 0"), Some((false, 5)));
        assert_eq!(state_and_parent("7 (a) R 1) Z 5 7 7 0"), Some((true, 5)));
        assert_eq!(state_and_parent("7"), None);
    }

    #[test]
    fn zombies_of_another_parent_are_excluded() {
        // The shell's child becomes a zombie of `sleep`, which reaps nothing.
        let mut parent =
            Command::new("sh").args(["-c", "true & exec sleep 60"]).spawn().expect("sh");
        let id = i32::try_from(parent.id()).expect("a process ID");
        let is_zombie_of = |pid: &str| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state_and_parent(&stat) == Some((true, id))
        };
        let has_zombie = || {
            let all = fs::read_dir("/proc").expect("processes").flatten();
            all.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_zombie_of))
        };
        while !has_zombie() {
            std::thread::yield_now();
        }
        let processes = descendants();
        parent.kill().expect("killed");
        parent.wait().expect("reaped");
        assert_eq!(processes, [Pid::from_raw(id).expect("a process")]);
    }
}
