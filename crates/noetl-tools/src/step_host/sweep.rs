//! Ends every process of a step, also those that left its group, its session, or their parent.
//!
//! The host is their subreaper or process 1 of their namespace, so each of them is below it for as long
//! as it lives: a host without children has no step left.

use std::collections::HashMap;
use std::fs;

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};

/// Pause between scans while killed processes have not exited.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// A process that ended, with its wait status.
pub(super) type Ended = (Pid, WaitStatus);

/// Reaps every child that ended. Returns whether any child is left.
pub(super) fn reap(mut ended: impl FnMut(Ended)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(one)) => ended(one),
            Ok(None) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills and reaps everything below this process but `kept`, until nothing is left.
pub(super) fn sweep(kept: Option<Pid>, mut ended: impl FnMut(Ended)) {
    loop {
        let has_children = reap(&mut ended);
        if !has_children {
            return;
        }
        let left: Vec<Pid> = descendants().into_iter().filter(|pid| Some(*pid) != kept).collect();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // One that is gone by now is as good as killed.
            let _ = kill_process(pid, Signal::KILL);
        }
        if reap(&mut ended) {
            // A signal ends the pause early, which does no harm.
            let _ = poll(&mut [], Some(&PAUSE));
        }
    }
}

/// Returns all descendants of this process, zombies included.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut pending = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = pending.pop() {
        for child in children.remove(&parent).into_iter().flatten() {
            pending.push(child);
            found.extend(Pid::from_raw(child));
        }
    }
    found
}

/// Reads the parent out of `/proc/<pid>/stat`; a zombie counts, since only its children matter.
fn parent(stat: &str) -> Option<i32> {
    // The name before it may hold anything, parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (sh) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (a) Z 1 (b) R 5 7 7 0"), Some(5));
        assert_eq!(parent("7"), None);
    }
}
